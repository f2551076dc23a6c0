#include "config/resolve.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.h"
#include "config/command_line.h"
#include "config/placement.h"
#include "config/schema.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

bool has_effect_in(Command command, const Declaration& key) {
  return (key.commands & bit(command)) != 0;
}

Values defaults_of(Command command) {
  Values values(command);
  for (const Declaration& key : schema()) {
    values.put(key.name, key.default_value, {});
  }
  return values;
}

void merge(const std::vector<Given>& given, Values& values, Problems& problems) {
  for (const Given& one : given) {
    const std::string& name = one.key->name;
    const bool twice = values.given(name) && values[name] != one.value;
    if (twice) {
      problems.add(fmt::format("--{} is given twice: {} and {} ({})",
                               name,
                               shown(values[name]),
                               shown(one.value),
                               one.source.text));
    } else {
      values.put(name, one.value, one.source);
    }
  }
}

void apply_derivations(Values& values) {
  for (const Declaration& key : schema()) {
    if (key.rule && !values.given(key.name)) {
      if (std::optional<RuleValue> derived = key.rule(values)) {
        values.put(
            key.name, std::move(derived->value), {SourceKind::kRule, std::move(derived->text)});
      }
    }
  }
}

std::optional<std::string> reason_without_effect(const Declaration& key, const Values& values) {
  if (key.status == Status::kHarmless) {
    return key.reason;
  }
  if (key.status == Status::kInForce && !has_effect_in(values.command(), key)) {
    return fmt::format("a setting of zeroth {}", names_of(key.commands));
  }
  if (key.without_effect) {
    if (auto why = key.without_effect(values)) {
      return why;
    }
  }
  const auto& off = key.off_values;
  const bool asks_for_nothing = std::find(off.begin(), off.end(), values[key.name]) != off.end();
  return key.status == Status::kPlanned && asks_for_nothing
             ? std::optional<std::string>("this is how it is anyway")
             : std::nullopt;
}

// Sorts every key into in force, without effect, or refused: none may be left over.
class Classifier {
 public:
  Classifier(const Values& values, Problems& problems) : values_(values), problems_(problems) {
    config_.command = values.command();
  }

  RunConfig classify() {
    for (const Declaration& key : schema()) {
      if (accepts(values_.command(), key)) {
        classify(key);
      }
    }
    return std::move(config_);
  }

 private:
  void classify(const Declaration& key) {
    const bool given = values_.given(key.name);
    if (const auto why = reason_without_effect(key, values_)) {
      if (given) {
        config_.without_effect.push_back({.key = key.name,
                                          .value = values_[key.name],
                                          .source = values_.source(key.name).text,
                                          .why = *why});
      }
    } else if (key.status == Status::kPlanned) {
      if (given) {
        problems_.add(fmt::format("--{} {}: not supported yet: {} ({})",
                                  key.name,
                                  shown(values_[key.name]),
                                  key.reason,
                                  values_.source(key.name).text));
      }
    } else {
      put_in_force(key, given);
    }
  }

  void put_in_force(const Declaration& key, bool given) {
    const Json& value = values_[key.name];
    const bool differs = !value.is_null() && key.field.get && value != key.field.get(RunConfig{});
    config_.settings.push_back({.key = key.name,
                                .value = value,
                                .source = values_.source(key.name).text,
                                .overrides = "",
                                .differs_from_default = given || differs});
    if (!value.is_null() && key.field.set) {
      key.field.set(config_, value);
    }
  }

  const Values& values_;
  Problems& problems_;
  RunConfig config_;
};

void place_in_folder(const Values& values, std::vector<std::string>& files) {
  if (values["dataset_dir"].is_null()) {
    return;
  }
  const std::filesystem::path folder = values["dataset_dir"].get<std::string>();
  for (std::string& file : files) {
    file = (folder / file).string();  // an absolute file stays as it is
  }
}

std::string table_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(3);
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string table;
  for (const auto& row : rows) {
    const std::string line =
        fmt::format("  {:{}}  {:{}}  {}", row[0], widths[0], row[1], widths[1], row[2]);
    table += "\n" + line;
  }
  return table;
}

bool accepts_ranks(Command command) {
  return accepts(command, *find_declaration("ranks"));
}

}  // namespace

Environment process_environment() {
  Environment environment;
  for (const std::string& name : launch_variables()) {
    if (const char* value = std::getenv(name.c_str())) {
      environment.emplace(name, value);
    }
  }
  return environment;
}

RunConfig resolve(Command command,
                  std::span<const std::string> arguments,
                  const Environment& environment) {
  Problems problems;
  Values values = defaults_of(command);
  merge(read_command_line(command, arguments, problems), values, problems);
  const Placement place = placement_of(environment, problems);
  if (place.launched() && accepts_ranks(command) && !values.given("ranks")) {
    values.put("ranks", place.world_size, {SourceKind::kRule, place.source + " (environment)"});
  }
  apply_derivations(values);
  check_rules(values, place, problems);
  RunConfig config = Classifier(values, problems).classify();
  problems.throw_if_any();
  config.launch.kind = place.kind;
  config.launch.rank = place.rank;
  config.launch.run_name = place.run_name;
  place_in_folder(values, config.data.dataset);
  place_in_folder(values, config.data.eval_dataset);
  return config;
}

std::string start_table(const RunConfig& config) {
  std::vector<std::vector<std::string>> in_force;
  for (const SettingInForce& setting : config.settings) {
    if (setting.differs_from_default) {
      const std::string overrides =
          setting.overrides.empty() ? "" : ", overrides " + setting.overrides;
      in_force.push_back({setting.key, shown(setting.value), setting.source + overrides});
    }
  }
  std::vector<std::vector<std::string>> without_effect;
  for (const SettingWithoutEffect& setting : config.without_effect) {
    without_effect.push_back(
        {setting.key, shown(setting.value), fmt::format("{} ({})", setting.why, setting.source)});
  }
  std::string table = "settings in force (set, or not the default)" + table_of(in_force);
  if (!without_effect.empty()) {
    table += "\nsettings without effect, and why" + table_of(without_effect);
  }
  return table;
}

}  // namespace zeroth::config
