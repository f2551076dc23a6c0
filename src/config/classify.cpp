#include "config/classify.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

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

// The batch is shown in full whoever set it: it is what this table is for. Clipping is on by
// default here and off in DeepSpeed.
bool always_in_table(const Declaration& key) {
  constexpr std::array kAlways{"train_batch_size",
                               "per_device_train_batch_size",
                               "gradient_accumulation_steps",
                               "ranks",
                               "max_grad_norm"};
  return std::find(kAlways.begin(), kAlways.end(), key.name) != kAlways.end();
}

std::optional<std::string> reason_without_effect(Command asked,
                                                 const Declaration& key,
                                                 const Values& values) {
  if (key.without_effect) {
    if (auto why = key.without_effect(values)) {
      return why;
    }
  }
  if (key.status == Status::kHarmless) {
    return key.reason;
  }
  if (key.status == Status::kInForce && !has_effect_in(values.command(), key) &&
      !has_effect_in(asked, key)) {
    return fmt::format("a setting of zeroth {}", names_of(key.commands));
  }
  return std::nullopt;
}

// A value that asks for nothing of a key that does not act (yet).
bool asks_for_nothing(const Declaration& key, const Json& value) {
  const bool idle = key.status == Status::kPlanned || key.status == Status::kRefused;
  return idle && is_off(key, value);
}

std::string source_of(const Setting& setting) {
  return setting.auto_in.empty()
             ? setting.source.text
             : fmt::format("auto in {}, filled from {}", setting.auto_in, setting.source.text);
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

// "fp16.enabled true", "optimizer.type OneBitAdam": in the words of the source.
std::string as_written(const Declaration& key, const Setting& setting) {
  return setting.spelled.empty()
             ? fmt::format("{} {}", key.name, shown(unless_secret(key, setting.value)))
             : fmt::format("{} {}", setting.spelled, shown(unless_secret(key, setting.written)));
}

// "--fp16 true" or "ds_config.json:14: fp16.enabled true".
std::string with_place(const Declaration& key, const Setting& setting) {
  return has_dashes(setting.source)
             ? "--" + as_written(key, setting)
             : fmt::format("{}: {}", setting.source.text, as_written(key, setting));
}

class Classifier {
 public:
  Classifier(Command asked, const Values& values, RunConfig& config, Problems& problems)
      : asked_(asked), values_(values), config_(config), problems_(problems) {}

  Fate classify(const Declaration& key) {
    const Setting& setting = values_.setting(key.name);
    const bool given = values_.given(key.name);
    if (values_.in_conflict(key.name)) {
      return {Outcome::kRefused, "sources differ"};
    }
    if (const auto why = reason_without_effect(asked_, key, values_)) {
      return without_effect(key, setting, *why);
    }
    if (asks_for_nothing(key, setting.value)) {
      return setting.overrides.empty() ? without_effect(key, setting, "this is how it is anyway")
                                       : in_force(key, setting, given);
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
  Fate without_effect(const Declaration& key, const Setting& setting, const std::string& why) {
    if (values_.given(key.name) || !setting.auto_in.empty()) {
      config_.without_effect.push_back({.key = key.name,
                                        .value = unless_secret(key, setting.value),
                                        .source = source_of(setting),
                                        .why = why,
                                        .as_written = as_written(key, setting)});
    }
    return {Outcome::kWithoutEffect, why};
  }

  Fate refused(const Declaration& key, const Setting& setting, const std::string& why) {
    problems_.add(
        {.kind = ProblemKind::kRefused,
         .key = key.name,
         .message = fmt::format(
             "{}: not supported: {} ({})", with_place(key, setting), why, setting.source.text),
         .sources = {setting.source.text}});
    return {Outcome::kRefused, why};
  }

  Fate planned(const Declaration& key, const Setting& setting, const std::string& why) {
    config_.planned.push_back({.key = key.name,
                               .value = unless_secret(key, setting.value),
                               .source = setting.source.text,
                               .why = why,
                               .as_written = as_written(key, setting)});
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
                                    (always_in_table(key) && !value.is_null()),
                        .spelled = setting.spelled};
    for (const Overridden& weaker : setting.overrides) {
      line.overrides.push_back({weaker.value, weaker.source.text});
    }
    config_.settings.push_back(std::move(line));
    if (!value.is_null() && key.field.set) {
      key.field.set(config_, value);
    }
    return {};
  }

  Command asked_;
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

// One of the keys that the written word stands for.
bool is_part(const Values& values, const std::string& key) {
  return values.given(key) &&
         find_declaration(values.setting(key).spelled) != find_declaration(key);
}

bool is_a_switch_left_alone(const Values& values, const std::string& key) {
  const Declaration& declaration = *find_declaration(key);
  return declaration.type == ValueType::kBoolean && values.is(key, declaration.default_value) &&
         values.setting(key).overrides.empty();
}

// "mixed_precision bf16" says fp16 false too. Where another part of such a word acts, this one
// needs no line of its own.
void drop_silent_parts(const Values& values, const Gathered& gathered, RunConfig& config) {
  std::erase_if(config.without_effect, [&](const IdleSetting& idle) {
    return is_part(values, idle.key) &&
           gathered.account[values.setting(idle.key).entry].outcome != Outcome::kWithoutEffect;
  });
  std::set<std::size_t> telling;
  for (const SettingInForce& setting : config.settings) {
    if (is_part(values, setting.key) && !is_a_switch_left_alone(values, setting.key)) {
      telling.insert(values.setting(setting.key).entry);
    }
  }
  for (SettingInForce& setting : config.settings) {
    if (is_part(values, setting.key) && is_a_switch_left_alone(values, setting.key) &&
        telling.contains(values.setting(setting.key).entry)) {
      setting.in_table = false;
    }
  }
}

}  // namespace

void classify(Command asked,
              const Values& values,
              Gathered& gathered,
              RunConfig& config,
              Problems& problems) {
  Classifier classifier(asked, values, config, problems);
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
  drop_silent_parts(values, gathered, config);
}

}  // namespace zeroth::config
