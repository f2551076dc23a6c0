#include "config/run_config.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "config/field.h"
#include "config/schema.h"

namespace zeroth::config {
namespace {

Json settings_to_json(const std::vector<SettingInForce>& settings) {
  Json list = Json::array();
  for (const SettingInForce& setting : settings) {
    Json overrides = Json::array();
    for (const WeakerValue& weaker : setting.overrides) {
      overrides.push_back({{"value", weaker.value}, {"source", weaker.source}});
    }
    list.push_back({{"key", setting.key},
                    {"value", setting.value},
                    {"source", setting.source},
                    {"overrides", std::move(overrides)},
                    {"agreeing", setting.agreeing},
                    {"auto_in", setting.auto_in},
                    {"given", setting.given},
                    {"in_table", setting.in_table},
                    {"spelled", setting.spelled}});
  }
  return list;
}

std::vector<SettingInForce> settings_from_json(const Json& list) {
  std::vector<SettingInForce> settings;
  for (const Json& entry : list) {
    SettingInForce setting{.key = entry.at("key"),
                           .value = entry.at("value"),
                           .source = entry.at("source"),
                           .overrides = {},
                           .agreeing = entry.at("agreeing"),
                           .auto_in = entry.at("auto_in"),
                           .given = entry.at("given"),
                           .in_table = entry.at("in_table"),
                           .spelled = entry.at("spelled")};
    for (const Json& weaker : entry.at("overrides")) {
      setting.overrides.push_back({weaker.at("value"), weaker.at("source")});
    }
    settings.push_back(std::move(setting));
  }
  return settings;
}

Json idle_to_json(const std::vector<IdleSetting>& settings) {
  Json list = Json::array();
  for (const IdleSetting& setting : settings) {
    list.push_back({{"key", setting.key},
                    {"value", setting.value},
                    {"source", setting.source},
                    {"why", setting.why},
                    {"as_written", setting.as_written}});
  }
  return list;
}

std::vector<IdleSetting> idle_from_json(const Json& list) {
  std::vector<IdleSetting> settings;
  for (const Json& entry : list) {
    settings.push_back({.key = entry.at("key"),
                        .value = entry.at("value"),
                        .source = entry.at("source"),
                        .why = entry.at("why"),
                        .as_written = entry.at("as_written")});
  }
  return settings;
}

Json grid_to_json(const GridInForce& grid) {
  return {{"world_size", grid.world_size},
          {"dp", grid.dp},
          {"pp", grid.pp},
          {"tp", grid.tp},
          {"sp", grid.sp},
          {"source", grid.source}};
}

GridInForce grid_from_json(const Json& json) {
  return {.world_size = json.at("world_size"),
          .dp = json.at("dp"),
          .pp = json.at("pp"),
          .tp = json.at("tp"),
          .sp = json.at("sp"),
          .source = json.at("source")};
}

}  // namespace

const SettingInForce* RunConfig::find(std::string_view key) const {
  const auto found =
      std::find_if(settings.begin(), settings.end(), [&](const SettingInForce& setting) {
        return setting.key == key;
      });
  return found == settings.end() ? nullptr : &*found;
}

Json RunConfig::value_of(std::string_view key) const {
  const SettingInForce* const setting = find(key);
  return setting == nullptr ? Json() : setting->value;
}

std::string RunConfig::model_as_given() const {
  const Json name = value_of("model_name_or_path");
  return name.is_string() ? name.get<std::string>() : model.model_name_or_path;
}

bool RunConfig::is_given(std::string_view key) const {
  const SettingInForce* const setting = find(key);
  return setting != nullptr && setting->given;
}

std::vector<std::string> ModelSettings::adapter_folders() const {
  std::vector<std::string> folders;
  for (const std::string& folder : split(adapter_name_or_path, ',')) {
    if (const std::string_view name = trim(folder); !name.empty()) {
      folders.emplace_back(name);
    }
  }
  return folders;
}

Json to_json(const RunConfig& config) {
  Json values = Json::object();
  for (const Declaration& key : schema()) {
    if (key.field.get) {
      values[key.name] = key.field.get(config);
    }
  }
  return {{"command", to_value(config.command)},
          {"values", std::move(values)},
          {"launch",
           {{"kind", to_value(config.launch.kind)},
            {"rank", config.launch.rank},
            {"run_name", config.launch.run_name}}},
          {"checkpoint", config.resume.folder},
          {"settings", settings_to_json(config.settings)},
          {"without_effect", idle_to_json(config.without_effect)},
          {"planned", idle_to_json(config.planned)},
          {"notices", config.notices},
          {"grid", grid_to_json(config.grid)}};
}

RunConfig from_json(const Json& json) {
  RunConfig config;
  assign(config.command, json.at("command"));
  assign(config.launch.kind, json.at("launch").at("kind"));
  config.launch.rank = json.at("launch").at("rank");
  config.launch.run_name = json.at("launch").at("run_name");
  for (const auto& [name, value] : json.at("values").items()) {
    const Declaration* key = find_declaration(name);
    ZEROTH_CHECK(key != nullptr && key->field.set, "no setting is called {}", name);
    key->field.set(config, value);
  }
  config.resume.folder = json.at("checkpoint");
  config.settings = settings_from_json(json.at("settings"));
  config.without_effect = idle_from_json(json.at("without_effect"));
  config.planned = idle_from_json(json.at("planned"));
  config.notices = json.at("notices");
  config.grid = grid_from_json(json.at("grid"));
  return config;
}

}  // namespace zeroth::config
