#pragma once

#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/keys/forms.h"

// How the keys of a ds_config.json are written down: what a key takes (forms.h), then what becomes
// of it. `deepspeed_keys()` joins the groups.
namespace zeroth::config::deepspeed {

// A list of numbers, none of which has bounds.
[[nodiscard]] inline Form number_list() {
  return {.type = ValueType::kNumbers};
}

// Called by its path. `form` says what it takes, and DeepSpeed's own default.
[[nodiscard]] inline Declaration key(const std::string& path, Form form, std::string help) {
  Declaration declared = of_form(path, std::move(form), std::move(help));
  declared.deepspeed = {path};
  return declared;
}

// ---- what becomes of it ----

using Condition = std::function<std::optional<std::string>(const Values&)>;

// No result depends on it. `without_effect`, where given, has the better reason in some runs.
[[nodiscard]] inline Declaration harmless(Declaration key,
                                          std::string reason,
                                          Condition without_effect = {}) {
  key.status = Status::kHarmless;
  key.reason = std::move(reason);
  key.without_effect = std::move(without_effect);
  return key;
}

// A detail of a feature whose switch is refused: one refusal is enough, and this says what it was
// about. `never`: what Zeroth does not do.
[[nodiscard]] inline Declaration detail(Declaration key, const std::string& never) {
  std::string reason = key.help + "; " + never;
  return harmless(std::move(key), std::move(reason));
}

[[nodiscard]] inline Declaration planned(Declaration key,
                                         std::vector<Json> off_values,
                                         std::string reason,
                                         Condition without_effect = {}) {
  key.status = Status::kPlanned;
  key.off_values = std::move(off_values);
  key.reason = std::move(reason);
  key.without_effect = std::move(without_effect);
  return key;
}

// `reason` tells what to write instead.
[[nodiscard]] inline Declaration refused(Declaration key,
                                         std::vector<Json> off_values,
                                         std::string reason,
                                         Condition without_effect = {}) {
  key =
      planned(std::move(key), std::move(off_values), std::move(reason), std::move(without_effect));
  key.status = Status::kRefused;
  return key;
}

// Used up by the keys that `parts` names.
[[nodiscard]] inline Declaration stands_for(Declaration key,
                                            std::function<std::vector<Part>(const Json&)> parts) {
  key.parts = std::move(parts);
  return key;
}

// ---- further words on a key ----

// Other paths in a ds_config.json that mean the same.
[[nodiscard]] inline Declaration also(Declaration key, std::initializer_list<std::string> paths) {
  key.deepspeed.insert(key.deepspeed.end(), paths);
  return key;
}

// Other paths in a ds_config.json, out of date.
[[nodiscard]] inline Declaration once(Declaration key, std::initializer_list<std::string> paths) {
  key.old_names.insert(key.old_names.end(), paths);
  return also(std::move(key), paths);
}

// Words that people write for it, and that are no keys.
[[nodiscard]] inline Declaration mistaken(Declaration key, std::vector<std::string> names) {
  key.mistaken_names = std::move(names);
  return key;
}

// The same setting in an Accelerate YAML.
[[nodiscard]] inline Declaration in_accelerate(Declaration key, std::string path) {
  key.accelerate.push_back(std::move(path));
  return key;
}

// "auto" may stand in a file.
[[nodiscard]] inline Declaration or_auto(Declaration key) {
  key.may_be_auto = true;
  return key;
}

[[nodiscard]] inline Declaration spelt(Declaration key,
                                       std::map<std::string, std::string> synonyms) {
  key.synonyms = std::move(synonyms);
  return key;
}

// ---- conditions ----

// "x.enabled is off"
[[nodiscard]] inline Condition only_when_on(std::string switch_key) {
  return [switch_key](const Values& values) -> std::optional<std::string> {
    if (values.is(switch_key, true)) {
      return std::nullopt;
    }
    return switch_key + " is off";
  };
}

[[nodiscard]] inline Condition only_with_stage_3(
    std::string otherwise = "no parameter memory is saved") {
  return [otherwise](const Values& values) -> std::optional<std::string> {
    if (values.is("zero_stage", 3)) {
      return std::nullopt;
    }
    return "needs stage 3: " + otherwise;
  };
}

// ---- the groups ----

[[nodiscard]] Declarations zero_keys();
[[nodiscard]] Declarations offload_keys();
[[nodiscard]] Declarations precision_keys();
[[nodiscard]] Declarations optimizer_parameters();
[[nodiscard]] Declarations engine_keys();
[[nodiscard]] Declarations checkpoint_keys();
[[nodiscard]] Declarations monitoring_keys();
[[nodiscard]] Declarations parallelism_keys();
[[nodiscard]] Declarations compile_keys();
[[nodiscard]] Declarations data_efficiency_keys();
[[nodiscard]] Declarations compression_keys();
[[nodiscard]] Declarations tuning_keys();

}  // namespace zeroth::config::deepspeed
