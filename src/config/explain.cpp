#include "config/explain.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "config/dialect.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

std::string places(const std::vector<std::string>& paths) {
  return paths.empty() ? "-" : join(paths, ", ");
}

std::string command_line_names(const Declaration& key) {
  std::string text = "--" + key.name;
  for (const std::string& alias : key.aliases) {
    text += ", --" + alias;
  }
  return text;
}

// Every written value that went to this key, in the order of the sources.
std::vector<const Written*> written_for(const Declaration& key, const Resolution& resolution) {
  std::vector<const Written*> found;
  for (const Written& written : resolution.account) {
    const Declaration* written_key = find_declaration(written.path);
    if (written_key == &key) {
      found.push_back(&written);
    }
  }
  return found;
}

const SettingInForce* in_force(const Declaration& key, const Resolution& resolution) {
  for (const SettingInForce& setting : resolution.config.settings) {
    if (setting.key == key.name) {
      return &setting;
    }
  }
  return nullptr;
}

std::string here(const Declaration& key, const Resolution& resolution) {
  std::string text;
  if (const SettingInForce* setting = in_force(key, resolution)) {
    text = fmt::format("{} ({})", shown(setting->value), setting->source);
  } else {
    text = "not in force";
  }
  for (const Written* written : written_for(key, resolution)) {
    text += fmt::format("\n    {}: {} {}{}",
                        written->source,
                        shown(written->value),
                        name_of(written->outcome),
                        written->note.empty() ? "" : ": " + written->note);
  }
  return text;
}

// A block has no value of its own: its keys have.
void refuse_block(const std::string& word, const std::vector<std::string>& names) {
  std::string keys;
  for (const std::string& name : names) {
    if (name.starts_with(word + ".")) {
      keys += "\n  " + name;
    }
  }
  if (!keys.empty()) {
    throw Error(ErrorKind::kUsage, fmt::format("{} is a block; its keys are{}", word, keys));
  }
}

}  // namespace

const Declaration& key_to_explain(const std::string& word) {
  if (const Declaration* key = find_declaration(word)) {
    return *key;
  }
  std::vector<std::string> names;
  for (const Declaration& key : schema()) {
    for (const std::string& name : all_names(key)) {
      names.push_back(name);
      if (const auto dot = name.rfind('.');
          dot != std::string::npos && name.substr(dot + 1) == word) {
        throw Error(ErrorKind::kUsage,
                    fmt::format("there is no key {} at the top: it is {}", word, name));
      }
    }
  }
  refuse_block(word, names);
  const std::vector<std::string> near = nearest_names(word, names);
  throw Error(ErrorKind::kUsage,
              near.empty()
                  ? fmt::format("there is no key {}\n  docs/configuration.md lists them all", word)
                  : fmt::format("there is no key {} (did you mean {}?)", word, join(near, " or ")));
}

std::string values_taken(const Declaration& key) {
  std::string text = value_placeholder(key);
  const std::string range = range_text(key.range);
  if (!range.empty()) {
    text += " " + range;
  }
  if (!key.unit.empty()) {
    text += ", " + key.unit;
  }
  if (key.may_be_auto) {
    text += ", or \"auto\" in a file";
  }
  return text;
}

std::string status_text(const Declaration& key) {
  const std::string off =
      key.off_values.empty()
          ? ""
          : fmt::format(" (except {}, which asks for nothing)", shown(Json(key.off_values)));
  switch (key.status) {
    case Status::kInForce:
      return "in force in " + names_of(key.commands);
    case Status::kPlanned:
      return "planned, not built yet: " + key.reason + off;
    case Status::kHarmless:
      return "without effect: " + key.reason;
    case Status::kRefused:
      return "refused: " + key.reason + off;
  }
  return "";
}

std::string explanation(const Declaration& key, const Resolution& resolution) {
  const std::string help = key.help.empty() ? "" : ": " + key.help;
  return fmt::format(
      "{}{}\n"
      "  takes             {}\n"
      "  default           {}\n"
      "  status            {}\n"
      "  command line      {}\n"
      "  ds_config.json    {}\n"
      "  Accelerate YAML   {}\n"
      "  here              {}",
      key.name,
      help,
      values_taken(key),
      shown(key.default_value),
      status_text(key),
      command_line_names(key),
      places(key.deepspeed),
      places(key.accelerate),
      here(key, resolution));
}

Json explanation_json(const Declaration& key, const Resolution& resolution) {
  Json sources = Json::array();
  for (const Written* written : written_for(key, resolution)) {
    sources.push_back({{"value", written->value},
                       {"source", written->source},
                       {"outcome", name_of(written->outcome)},
                       {"note", written->note}});
  }
  const SettingInForce* setting = in_force(key, resolution);
  return {{"key", key.name},
          {"help", key.help},
          {"takes", values_taken(key)},
          {"default", key.default_value},
          {"status", status_text(key)},
          {"aliases", key.aliases},
          {"deepspeed", key.deepspeed},
          {"accelerate", key.accelerate},
          {"value", setting == nullptr ? Json() : setting->value},
          {"source", setting == nullptr ? Json() : Json(setting->source)},
          {"sources", std::move(sources)}};
}

}  // namespace zeroth::config
