#include "config/run_config.h"

#include "base/check.h"
#include "config/field.h"
#include "config/schema.h"

namespace zeroth::config {
namespace {

Json settings_to_json(const std::vector<SettingInForce>& settings) {
  Json list = Json::array();
  for (const SettingInForce& setting : settings) {
    list.push_back({{"key", setting.key},
                    {"value", setting.value},
                    {"source", setting.source},
                    {"overrides", setting.overrides},
                    {"differs_from_default", setting.differs_from_default}});
  }
  return list;
}

Json without_effect_to_json(const std::vector<SettingWithoutEffect>& settings) {
  Json list = Json::array();
  for (const SettingWithoutEffect& setting : settings) {
    list.push_back({{"key", setting.key},
                    {"value", setting.value},
                    {"source", setting.source},
                    {"why", setting.why}});
  }
  return list;
}

}  // namespace

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
          {"settings", settings_to_json(config.settings)},
          {"without_effect", without_effect_to_json(config.without_effect)}};
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
  for (const Json& setting : json.at("settings")) {
    config.settings.push_back({.key = setting.at("key"),
                               .value = setting.at("value"),
                               .source = setting.at("source"),
                               .overrides = setting.at("overrides"),
                               .differs_from_default = setting.at("differs_from_default")});
  }
  for (const Json& setting : json.at("without_effect")) {
    config.without_effect.push_back({.key = setting.at("key"),
                                     .value = setting.at("value"),
                                     .source = setting.at("source"),
                                     .why = setting.at("why")});
  }
  return config;
}

}  // namespace zeroth::config
