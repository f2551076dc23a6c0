#include "config/report.h"

#include <string_view>
#include <vector>

#include "arithmetic/checked.h"
#include "arithmetic/updates.h"
#include "base/text.h"
#include "config/schedule_rules.h"
#include "config/schema.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

std::string_view last_word(std::string_view path) {
  return path.substr(path.rfind('.') + 1);
}

std::string source_of(const SettingInForce& setting) {
  // A file has the key by another name than the table.
  const std::string& spelled = setting.spelled;
  const bool in_file = setting.given && setting.source.find(':') != std::string::npos;
  const bool other_name =
      in_file && !spelled.empty() && last_word(spelled) != last_word(setting.key);
  std::string text = other_name ? setting.source + " " + spelled : setting.source;
  if (!setting.auto_in.empty()) {
    text = setting.given ? fmt::format("{}; auto in {}", text, setting.auto_in)
                         : fmt::format("auto in {}, filled from {}", setting.auto_in, text);
  }
  for (const WeakerValue& weaker : setting.overrides) {
    text += fmt::format(", overrides {}: {}", weaker.source, shown(weaker.value));
  }
  for (const std::string& source : setting.agreeing) {
    text += fmt::format(", {} agrees", source);
  }
  return text;
}

std::string idle_lines(const std::string& title, const std::vector<IdleSetting>& settings) {
  std::string text;
  for (const IdleSetting& setting : settings) {
    text += fmt::format(
        "\n  {} {}: {} ({})", setting.key, shown(setting.value), setting.why, setting.source);
  }
  return text.empty() ? "" : "\n" + title + text;
}

Json idle_list(const std::vector<IdleSetting>& settings) {
  Json list = Json::array();
  for (const IdleSetting& setting : settings) {
    list.push_back({{"key", setting.key},
                    {"value", setting.value},
                    {"source", setting.source},
                    {"why", setting.why}});
  }
  return list;
}

Json settings_list(const RunConfig& config) {
  Json list = Json::array();
  for (const SettingInForce& setting : config.settings) {
    Json overrides = Json::array();
    for (const WeakerValue& weaker : setting.overrides) {
      overrides.push_back({{"value", weaker.value}, {"source", weaker.source}});
    }
    Json entry{{"key", setting.key},
               {"value", setting.value},
               {"source", setting.source},
               {"overrides", std::move(overrides)}};
    if (!setting.agreeing.empty()) {
      entry["agreeing"] = setting.agreeing;
    }
    if (!setting.auto_in.empty()) {
      entry["auto_in"] = setting.auto_in;
    }
    list.push_back(std::move(entry));
  }
  return list;
}

Json errors_list(const Problems& problems) {
  Json list = Json::array();
  for (const Problem& problem : problems.all()) {
    list.push_back({{"kind", name_of(problem.kind)},
                    {"key", problem.key},
                    {"message", problem.message},
                    {"sources", problem.sources}});
  }
  return list;
}

Json account_list(const std::vector<Written>& account) {
  Json list = Json::array();
  for (const Written& written : account) {
    list.push_back({{"key", written.path},
                    {"value", written.value},
                    {"source", written.source},
                    {"outcome", name_of(written.outcome)},
                    {"note", written.note},
                    {"leaves", written.num_leaves}});
  }
  return list;
}

Json known(const std::optional<std::int64_t>& count) {
  return count ? Json(*count) : Json();
}

Json learning_rates(const RunConfig& config, const Outlook& outlook) {
  if (!outlook.total_updates) {
    return nullptr;
  }
  const std::int64_t total = *outlook.total_updates;
  const arithmetic::Schedule schedule = schedule_of(config, total);
  return {{"first", schedule.at(0)},
          {"warmup_updates", schedule.warmup_updates},
          {"after_warmup", schedule.at(schedule.warmup_end())},
          {"middle", schedule.at(total / 2)},
          {"last", schedule.at(total - 1)}};
}

// The three sizes fit together: where they do not, a problem says so and no batch is shown.
bool batch_holds(const RunConfig& config) {
  const Json train = config.value_of("train_batch_size");
  const auto product = arithmetic::product_of(
      {config.batch.micro_batch_rows, config.batch.accumulation, config.grid.dp});
  return product && train == *product;
}

}  // namespace

std::string batch_line(const RunConfig& config) {
  const BatchSettings& batch = config.batch;
  const std::string divided = config.grid.dp == config.grid.world_size
                                  ? ""
                                  : fmt::format("; dp {} = world size {} / (tp {} x sp {})",
                                                config.grid.dp,
                                                config.grid.world_size,
                                                config.grid.tp,
                                                config.grid.sp);
  return fmt::format(
      "global batch {} = {} x {} x {} (micro-batch x accumulation x data-parallel "
      "ranks{})\nworld size {} ({})",
      config.global_rows(),
      batch.micro_batch_rows,
      batch.accumulation,
      config.grid.dp,
      divided,
      config.grid.world_size,
      config.grid.source);
}

std::string start_table(const RunConfig& config) {
  std::string table = "settings in force (set, or not the default)";
  for (const SettingInForce& setting : config.settings) {
    if (setting.in_table) {
      table += fmt::format("\n  {} {} ({})", setting.key, shown(setting.value), source_of(setting));
    }
  }
  table += idle_lines("settings without effect, and why", config.without_effect);
  table += idle_lines("settings that are planned: known, not built yet", config.planned);
  if (config.command == Command::kTrain && batch_holds(config)) {
    table += '\n';
    table += batch_line(config);
  }
  for (const std::string& notice : config.notices) {
    table += "\nnotice: " + notice;
  }
  return table;
}

Outlook outlook_of(const RunConfig& config, std::optional<std::int64_t> rows) {
  Outlook outlook{.rows = rows};
  if (rows && *rows > 0) {
    const arithmetic::RunLength length =
        arithmetic::run_length({.rows = *rows,
                                .global_rows = config.global_rows(),
                                .num_train_epochs = config.schedule.num_train_epochs,
                                .max_steps = config.schedule.max_steps});
    outlook.updates_per_epoch = length.updates_per_epoch;
    outlook.updates_by_epochs = length.updates_by_epochs;
    outlook.total_updates = length.total_updates;
  } else if (config.schedule.max_steps > 0) {
    outlook.total_updates = config.schedule.max_steps;
  }
  return outlook;
}

std::string outlook_lines(const RunConfig& config, const Outlook& outlook) {
  if (!outlook.total_updates) {
    return "";
  }
  const std::int64_t total = *outlook.total_updates;
  std::string text = fmt::format("updates: {} in all", total);
  if (outlook.updates_per_epoch) {
    text += fmt::format(", {} per epoch of {} rows", *outlook.updates_per_epoch, *outlook.rows);
  }
  if (outlook.updates_by_epochs && *outlook.updates_by_epochs != total) {
    text += fmt::format(" (by max_steps; num_train_epochs {} would be {})",
                        config.schedule.num_train_epochs,
                        *outlook.updates_by_epochs);
  }
  return text + "\n" + rates_line(schedule_of(config, total), total);
}

Json check_report(const Resolution& resolution, const Outlook& outlook) {
  const RunConfig& config = resolution.config;
  const GridInForce& grid = config.grid;
  return {{"ok", resolution.problems.empty()},
          {"settings", settings_list(config)},
          {"without_effect", idle_list(config.without_effect)},
          {"planned", idle_list(config.planned)},
          {"errors", errors_list(resolution.problems)},
          {"grid",
           {{"world_size", grid.world_size},
            {"dp", grid.dp},
            {"pp", grid.pp},
            {"tp", grid.tp},
            {"sp", grid.sp},
            {"source", grid.source}}},
          {"batch",
           {{"train_batch_size", config.value_of("train_batch_size")},
            {"micro_batch_size", config.value_of("per_device_train_batch_size")},
            {"gradient_accumulation_steps", config.value_of("gradient_accumulation_steps")},
            {"updates_per_epoch", known(outlook.updates_per_epoch)},
            {"total_updates", known(outlook.total_updates)}}},
          {"rows", known(outlook.rows)},
          {"learning_rate", learning_rates(config, outlook)},
          {"notices", config.notices},
          {"account", account_list(resolution.account)}};
}

namespace {

// Its value is written under the keys that it stands for.
bool stands_for_others(const std::string& key) {
  const Declaration* declaration = find_declaration(key);
  return declaration != nullptr && static_cast<bool>(declaration->parts);
}

}  // namespace

Json effective_config(const RunConfig& config) {
  Json recipe = Json::object();
  Json sources = Json::object();
  for (const SettingInForce& setting : config.settings) {
    const bool nothing =
        setting.value.is_null() || (setting.value.is_array() && setting.value.empty());
    if (!nothing && !stands_for_others(setting.key) && setting.key != "strict" &&
        setting.key != "expect" && setting.key != "deepspeed" &&
        setting.key != "accelerate_config") {
      recipe[setting.key] = setting.value;
      sources[setting.key] = source_of(setting);
    }
  }
  recipe["_sources"] = std::move(sources);
  return recipe;
}

}  // namespace zeroth::config
