#include "config/saving_rules.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "config/rules.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

void refuse(Problems& problems,
            const Values& values,
            const std::string& key,
            const std::string& other,
            const std::string& what) {
  problems.add({.kind = ProblemKind::kConflict,
                .key = key,
                .message = what,
                .sources = {values.source(key).text, values.source(other).text}});
}

void check_steps(const Values& values, Problems& problems) {
  const double steps = values["save_steps"].get<double>();
  if (steps >= 1 && std::floor(steps) != steps) {
    problems.add({.kind = ProblemKind::kConflict,
                  .key = "save_steps",
                  .message = fmt::format(
                      "{}: neither a number of updates nor a share of all of them below 1",
                      spelled_with_source(values, "save_steps")),
                  .sources = {values.source("save_steps").text}});
  }
}

// The weights of the best evaluation must have been saved when it was made.
void check_best(const Values& values, Problems& problems) {
  const bool by_best = values.is("save_strategy", "best");
  const bool loads_best = values.is("load_best_model_at_end", true);
  const std::string asked =
      spelled_with_source(values, loads_best ? "load_best_model_at_end" : "save_strategy");
  const std::string key = loads_best ? "load_best_model_at_end" : "save_strategy";
  if (!by_best && !loads_best) {
    return;
  }
  if (values.is("eval_strategy", "no")) {
    refuse(problems,
           values,
           key,
           "eval_strategy",
           asked + " needs evaluations while training: give --eval_strategy steps or epoch");
    return;
  }
  if (by_best || !loads_best) {
    return;
  }
  if (values["save_strategy"] != values["eval_strategy"]) {
    refuse(problems,
           values,
           key,
           "save_strategy",
           fmt::format("{} needs a checkpoint of every evaluation, and {} is not {}\n    Give both "
                       "the same, or --save_strategy best.",
                       asked,
                       spelled_with_source(values, "save_strategy"),
                       spelled_with_source(values, "eval_strategy")));
    return;
  }
  const double save_steps = values["save_steps"].get<double>();
  const double eval_steps = values["eval_steps"].get<double>();
  if (values.is("save_strategy", "steps") && std::fmod(save_steps, eval_steps) != 0) {
    refuse(problems,
           values,
           key,
           "save_steps",
           fmt::format("{} needs {} to be a multiple of {}",
                       asked,
                       spelled_with_source(values, "save_steps"),
                       spelled_with_source(values, "eval_steps")));
  }
}

void check_resume(const Values& values, Problems& problems) {
  const Json& from = values["resume_from_checkpoint"];
  if (from == "" || (!from.is_null() && !from.is_string() && !from.is_boolean())) {
    problems.add({.kind = ProblemKind::kType,
                  .key = "resume_from_checkpoint",
                  .message = fmt::format("{}: takes a folder, latest, auto, true or false",
                                         spelled_with_source(values, "resume_from_checkpoint")),
                  .sources = {values.source("resume_from_checkpoint").text}});
  }
  for (const Json& name : values["allow"]) {
    const auto text = name.get<std::string>();
    const Declaration* key = find_declaration(text);
    const bool may_be_allowed = key != nullptr && (key->on_resume == OnResume::kNeedsAllow ||
                                                   key->on_resume == OnResume::kByContent);
    if (!may_be_allowed) {
      problems.add({.kind = ProblemKind::kUsage,
                    .key = "allow",
                    .message = fmt::format(
                        "--allow {}: {} ({})",
                        text,
                        key == nullptr ? "there is no such key" : "it may change without --allow",
                        values.source("allow").text),
                    .sources = {values.source("allow").text}});
    }
  }
}

bool is_kept(const SettingInForce& setting) {
  const Declaration* key = find_declaration(setting.key);
  const bool nothing =
      setting.value.is_null() || (setting.value.is_array() && setting.value.empty());
  return !nothing && key != nullptr && !key->parts && !key->secret &&
         key->on_resume != OnResume::kUntold;
}

bool is_allowed(const RunConfig& config, const Declaration& key) {
  return std::any_of(config.resume.allowed.begin(),
                     config.resume.allowed.end(),
                     [&](const std::string& name) { return find_declaration(name) == &key; });
}

std::string shown_or_none(const Json& value) {
  return value.is_null() ? "not in force" : shown(value);
}

}  // namespace

void check_saving(const Values& values, Problems& problems) {
  if (values.command() != Command::kTrain) {
    return;
  }
  check_steps(values, problems);
  check_best(values, problems);
  check_resume(values, problems);
}

std::string state_of_optimizer(const std::string& optim, bool has_momentum) {
  if (optim == "sgd") {
    return has_momentum ? "a sum of gradients" : "nothing";
  }
  if (optim == "lion") {
    return "a mean of gradients";
  }
  return optim == "adagrad" ? "a sum of squared gradients"
                            : "means of gradients and of their squares";
}

Json settings_to_keep(const RunConfig& config) {
  Json kept = Json::object();
  for (const SettingInForce& setting : config.settings) {
    if (is_kept(setting)) {
      kept[setting.key] = setting.value;
    }
  }
  return kept;
}

std::vector<ResumeDifference> differences_on_resume(const Json& kept, const RunConfig& config) {
  const Json present = settings_to_keep(config);
  std::set<std::string> keys;
  for (const Json* settings : {&kept, &present}) {
    for (const auto& entry : settings->items()) {
      keys.insert(entry.key());
    }
  }
  std::vector<ResumeDifference> differences;
  for (const std::string& name : keys) {
    const Json saved = kept.contains(name) ? kept[name] : Json();
    const Json now = present.contains(name) ? present[name] : Json();
    const Declaration* key = find_declaration(name);
    if (saved == now || key == nullptr) {
      continue;  // a key that this version does not know decided nothing that this one does
    }
    const SettingInForce* setting = config.find(name);
    differences.push_back(
        {.key = name,
         .saved = saved,
         .now = now,
         .source = setting == nullptr ? "without effect here" : setting->source,
         .needs_allow = key->on_resume == OnResume::kNeedsAllow && !is_allowed(config, *key)});
  }
  return differences;
}

std::string text_of(const ResumeDifference& difference) {
  return fmt::format("{}: checkpoint {}, now {} ({})",
                     difference.key,
                     shown_or_none(difference.saved),
                     shown_or_none(difference.now),
                     difference.source);
}

}  // namespace zeroth::config
