#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/keys/keys.h"

// Tables of keys that have no field of their own: one row says what a value may be, what the key is
// for, and why it does not act.
namespace zeroth::config {

// What a value of a key may be, and its value where nobody gives one.
struct Form {
  ValueType type = ValueType::kAny;
  Json default_value = nullptr;
  Range range{};
  std::vector<std::string> choices{};
  std::string unit{};
  bool secret = false;
};

[[nodiscard]] inline Form flag(Json by_default) {
  return {.type = ValueType::kBoolean, .default_value = std::move(by_default)};
}

[[nodiscard]] inline Form whole(Range range, Json by_default = nullptr, std::string unit = "") {
  return {.type = ValueType::kInteger,
          .default_value = std::move(by_default),
          .range = range,
          .unit = std::move(unit)};
}

[[nodiscard]] inline Form number(Range range, Json by_default = nullptr, std::string unit = "") {
  return {.type = ValueType::kNumber,
          .default_value = std::move(by_default),
          .range = range,
          .unit = std::move(unit)};
}

[[nodiscard]] inline Form text(Json by_default = nullptr) {
  return {.type = ValueType::kText, .default_value = std::move(by_default)};
}

// Never shown.
[[nodiscard]] inline Form password() {
  return {.type = ValueType::kText, .secret = true};
}

[[nodiscard]] inline Form one_of(std::vector<std::string> choices, Json by_default = nullptr) {
  return {.type = ValueType::kChoice,
          .default_value = std::move(by_default),
          .choices = std::move(choices)};
}

[[nodiscard]] inline Form names(Json by_default = nullptr) {
  return {.type = ValueType::kList, .default_value = std::move(by_default)};
}

[[nodiscard]] inline Form block() {
  return {.type = ValueType::kMap};
}

[[nodiscard]] inline Form anything(Json by_default = nullptr) {
  return {.type = ValueType::kAny, .default_value = std::move(by_default)};
}

// The values that ask for nothing: the default where there is one, else what people write for it.
[[nodiscard]] inline std::vector<Json> off_values_of(const Form& form) {
  if (!form.default_value.is_null()) {
    return {form.default_value};
  }
  switch (form.type) {
    case ValueType::kBoolean:
      return {"none", false};
    case ValueType::kList:
      return {"none", Json::array(), Json::array({"none"})};
    case ValueType::kMap:
      return {"none", Json::object()};
    default:
      return {"none"};
  }
}

// A key of that form; what becomes of it is not said yet.
[[nodiscard]] inline Declaration of_form(std::string name, Form form, std::string help) {
  return {.name = std::move(name),
          .type = form.type,
          .choices = std::move(form.choices),
          .range = form.range,
          .default_value = std::move(form.default_value),
          .secret = form.secret,
          .unit = std::move(form.unit),
          .commands = kRunFamily,
          .help = std::move(help)};
}

[[nodiscard]] inline Declaration row(
    Status status, std::string name, Form form, std::string help, std::string reason) {
  std::vector<Json> off = status == Status::kHarmless ? std::vector<Json>{} : off_values_of(form);
  Declaration key = of_form(std::move(name), std::move(form), std::move(help));
  key.status = status;
  key.off_values = std::move(off);
  key.reason = std::move(reason);
  return key;
}

// Known, not built yet. `reason` says what is there instead.
[[nodiscard]] inline Declaration planned(std::string name,
                                         Form form,
                                         std::string help,
                                         std::string reason) {
  return row(
      Status::kPlanned, std::move(name), std::move(form), std::move(help), std::move(reason));
}

// Known, and no result depends on it: `reason` says why not.
[[nodiscard]] inline Declaration harmless(std::string name,
                                          Form form,
                                          std::string help,
                                          std::string reason) {
  return row(
      Status::kHarmless, std::move(name), std::move(form), std::move(help), std::move(reason));
}

// Known, and not what Zeroth does. `reason` says why, and what to write instead.
[[nodiscard]] inline Declaration refused(std::string name,
                                         Form form,
                                         std::string help,
                                         std::string reason) {
  return row(
      Status::kRefused, std::move(name), std::move(form), std::move(help), std::move(reason));
}

// ---- what a row may have besides ----

[[nodiscard]] inline Declaration also_called(std::vector<std::string> aliases, Declaration key) {
  key.aliases = std::move(aliases);
  return key;
}

// Names out of date, accepted all the same.
[[nodiscard]] inline Declaration once_called(std::vector<std::string> names, Declaration key) {
  key.aliases.insert(key.aliases.end(), names.begin(), names.end());
  key.old_names = std::move(names);
  return key;
}

// The whole key is out of date; `successor` took over.
[[nodiscard]] inline Declaration replaced_by(std::string successor, Declaration key) {
  key.successor = std::move(successor);
  return key;
}

// Further values that ask for nothing.
[[nodiscard]] inline Declaration off_too(std::vector<Json> values, Declaration key) {
  key.off_values.insert(key.off_values.end(), values.begin(), values.end());
  return key;
}

[[nodiscard]] inline Declaration spelled(std::map<std::string, std::string> synonyms,
                                         Declaration key) {
  key.synonyms = std::move(synonyms);
  return key;
}

// The paths of the key in an Accelerate YAML.
[[nodiscard]] inline Declaration at(std::vector<std::string> accelerate, Declaration key) {
  key.accelerate = std::move(accelerate);
  return key;
}

// It belongs to another key, and asks for nothing unless that one has this value.
[[nodiscard]] inline Declaration only_if(std::string other, Json value, Declaration key) {
  key.without_effect = [other = std::move(other), value = std::move(value)](const Values& values) {
    return values.is(other, value) ? std::nullopt
                                   : std::optional<std::string>(other + " is not " + shown(value));
  };
  return key;
}

[[nodiscard]] inline Declarations in_section(const std::string& section, Declarations keys) {
  for (Declaration& key : keys) {
    key.section = section;
  }
  return keys;
}

[[nodiscard]] inline Declarations joined(std::vector<Declarations> groups) {
  Declarations keys;
  for (Declarations& group : groups) {
    std::move(group.begin(), group.end(), std::back_inserter(keys));
  }
  return keys;
}

}  // namespace zeroth::config
