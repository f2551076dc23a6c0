#include "config/classify.h"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

namespace zeroth::config {
namespace {

struct Fate {
  Outcome outcome = Outcome::kInForce;
  std::string note{};
};

bool has_effect_in(Command command, const Declaration& key) {
  return (key.commands & bit(command)) != 0;
}

bool is_off(const Declaration& key, const Json& value) {
  return std::find(key.off_values.begin(), key.off_values.end(), value) != key.off_values.end();
}

// The batch is shown in full whoever set it: it is what this table is for.
bool always_in_table(const Declaration& key) {
  constexpr std::array kBatch{
      "train_batch_size", "per_device_train_batch_size", "gradient_accumulation_steps", "ranks"};
  return std::find(kBatch.begin(), kBatch.end(), key.name) != kBatch.end();
}

std::optional<std::string> reason_without_effect(const Declaration& key, const Values& values) {
  if (key.without_effect) {
    if (auto why = key.without_effect(values)) {
      return why;
    }
  }
  if (key.status == Status::kHarmless) {
    return key.reason;
  }
  if (key.status == Status::kInForce && !has_effect_in(values.command(), key) &&
      key.commands != kCheckOnly) {
    return fmt::format("a setting of zeroth {}", names_of(key.commands));
  }
  const bool idle = key.status == Status::kPlanned || key.status == Status::kRefused;
  return idle && is_off(key, values[key.name])
             ? std::optional<std::string>("this is how it is anyway")
             : std::nullopt;
}

std::optional<std::string> reason_of_choice(const std::map<std::string, std::string>& choices,
                                            const Json& value) {
  if (!value.is_string()) {
    return std::nullopt;
  }
  const auto found = choices.find(value.get<std::string>());
  return found == choices.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string> reason_if(Status status, const Declaration& key, const Json& value) {
  const auto& choices = status == Status::kPlanned ? key.planned_choices : key.refused_choices;
  if (auto why = reason_of_choice(choices, value)) {
    return why;
  }
  return key.status == status ? std::optional(key.reason) : std::nullopt;
}

// "--fp16 true" or "ds_config.json:14: fp16.enabled true".
std::string written_as(const Declaration& key, const Setting& setting) {
  const std::string name = setting.spelled.empty() ? key.name : setting.spelled;
  const std::string value = shown(unless_secret(key, setting.value));
  return setting.source.kind == SourceKind::kCommandLine
             ? fmt::format("--{} {}", name, value)
             : fmt::format("{}: {} {}", setting.source.text, name, value);
}

class Classifier {
 public:
  Classifier(const Values& values, RunConfig& config, Problems& problems)
      : values_(values), config_(config), problems_(problems) {}

  Fate classify(const Declaration& key) {
    const Setting& setting = values_.setting(key.name);
    const bool given = values_.given(key.name);
    if (values_.in_conflict(key.name)) {
      return {Outcome::kRefused, "sources differ"};
    }
    if (const auto why = reason_without_effect(key, values_)) {
      return without_effect(key, setting, given, *why);
    }
    if (const auto why = reason_if(Status::kRefused, key, setting.value)) {
      return given ? refused(key, setting, *why) : Fate{};
    }
    if (const auto why = reason_if(Status::kPlanned, key, setting.value)) {
      return given ? planned(key, setting, *why) : Fate{};
    }
    return in_force(key, setting, given);
  }

 private:
  Fate without_effect(const Declaration& key,
                      const Setting& setting,
                      bool given,
                      const std::string& why) {
    if (given) {
      config_.without_effect.push_back({.key = key.name,
                                        .value = unless_secret(key, setting.value),
                                        .source = setting.source.text,
                                        .why = why});
    }
    return {Outcome::kWithoutEffect, why};
  }

  Fate refused(const Declaration& key, const Setting& setting, const std::string& why) {
    problems_.add(
        {.kind = ProblemKind::kRefused,
         .key = key.name,
         .message = fmt::format(
             "{}: not supported: {} ({})", written_as(key, setting), why, setting.source.text),
         .sources = {setting.source.text}});
    return {Outcome::kRefused, why};
  }

  Fate planned(const Declaration& key, const Setting& setting, const std::string& why) {
    config_.planned.push_back({.key = key.name,
                               .value = unless_secret(key, setting.value),
                               .source = setting.source.text,
                               .why = why});
    return {Outcome::kPlanned, why};
  }

  Fate in_force(const Declaration& key, const Setting& setting, bool given) {
    const Json& value = setting.value;
    const bool differs = !value.is_null() && key.field.get && value != key.field.get(RunConfig{});
    SettingInForce line{.key = key.name,
                        .value = value,
                        .source = setting.source.text,
                        .overrides = {},
                        .agreeing = setting.agreeing,
                        .auto_in = setting.auto_in,
                        .given = given,
                        .in_table = given || differs || !setting.auto_in.empty() ||
                                    (always_in_table(key) && !value.is_null())};
    for (const Overridden& weaker : setting.overrides) {
      line.overrides.push_back({weaker.value, weaker.source.text});
    }
    config_.settings.push_back(std::move(line));
    if (!value.is_null() && key.field.set) {
      key.field.set(config_, value);
    }
    return {};
  }

  const Values& values_;
  RunConfig& config_;
  Problems& problems_;
};

// The fate of one value, given that of its key.
Fate fate_of(const Given& given, const Setting& setting, const Fate& key_fate) {
  if (given.is_auto()) {
    return {key_fate.outcome,
            fmt::format("auto, filled from {}: {}", setting.source.text, shown(setting.value))};
  }
  const bool weaker = given.source.kind < setting.source.kind && given.value != setting.value;
  if (weaker && key_fate.outcome != Outcome::kRefused) {
    return {Outcome::kOverridden, setting.source.text};
  }
  return key_fate;
}

// What a written value came to, where it stands for several keys: the weightiest decides.
int weight_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kRefused:
      return 4;
    case Outcome::kPlanned:
      return 3;
    case Outcome::kInForce:
      return 2;
    case Outcome::kOverridden:
      return 1;
    case Outcome::kWithoutEffect:
      return 0;
  }
  return 0;
}

}  // namespace

void classify(const Values& values, Gathered& gathered, RunConfig& config, Problems& problems) {
  Classifier classifier(values, config, problems);
  std::map<const Declaration*, Fate> fates;
  for (const Declaration& key : schema()) {
    if (accepts(values.command(), key) || values.given(key.name)) {
      fates[&key] = classifier.classify(key);
    }
  }
  std::map<std::size_t, Fate> outcomes;
  for (const Given& given : gathered.given) {
    const Fate fate = fate_of(given, values.setting(given.key->name), fates[given.key]);
    const auto [there, added] = outcomes.emplace(given.written, fate);
    if (!added && weight_of(fate.outcome) > weight_of(there->second.outcome)) {
      there->second = fate;
    }
  }
  for (const auto& [written, fate] : outcomes) {
    gathered.account[written].outcome = fate.outcome;
    gathered.account[written].note = fate.note;
  }
}

}  // namespace zeroth::config
