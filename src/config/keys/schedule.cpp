// Learning-rate schedules: Transformers' with their lr_scheduler_kwargs, DeepSpeed's with their
// scheduler.params.
#include "arithmetic/schedule.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "config/field.h"
#include "config/keys/keys.h"
#include "config/keys/optimizers.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

using arithmetic::CurveParameters;
using arithmetic::OneCycleParameters;
using arithmetic::RangeTestParameters;
using arithmetic::WarmupParameters;

constexpr auto kSection = "Schedule";
constexpr auto kTotal = "scheduler.params.total_num_steps";

ScheduleKind kind_of(const Values& values) {
  const auto kind =
      arithmetic::schedule_named(values["lr_scheduler_type"].get_ref<const std::string&>());
  return kind.value_or(ScheduleKind::kLinear);
}

// "lr_scheduler_type is cosine (command line)"
std::string schedule_in_force(const Values& values) {
  return fmt::format("lr_scheduler_type is {} ({})",
                     shown(values["lr_scheduler_type"]),
                     values.source("lr_scheduler_type").text);
}

std::optional<std::string> unless_taken(const Values& values, std::string_view parameter) {
  const auto taken = arithmetic::parameters_of(kind_of(values));
  if (std::find(taken.begin(), taken.end(), parameter) == taken.end()) {
    return schedule_in_force(values);
  }
  return std::nullopt;
}

std::optional<std::string> only_without_max_steps(const Values& values) {
  if (values["max_steps"].get<std::int64_t>() > 0) {
    return fmt::format("max_steps is given and decides: training stops at update {} ({})",
                       shown(values["max_steps"]),
                       values.source("max_steps").text);
  }
  return std::nullopt;
}

// "constant" alone has no warm-up; asking for one with it is answered by name rather than dropped.
std::optional<std::string> only_with_warmup(const Values& values) {
  if (values.is("lr_scheduler_type", "constant")) {
    return "lr_scheduler_type is constant: use constant_with_warmup for a warm-up";
  }
  return arithmetic::uses_warmup(kind_of(values)) ? std::nullopt
                                                  : std::optional(schedule_in_force(values));
}

std::optional<std::string> only_without_warmup_steps(const Values& values) {
  if (values["warmup_steps"].get<std::int64_t>() > 0) {
    return "warmup_steps is given and decides";
  }
  return only_with_warmup(values);
}

// DeepSpeed's schedule has a peak of its own; a learning rate from a stronger source beats it.
std::optional<std::string> peak_elsewhere(const Values& values) {
  if (const auto why = unless_taken(values, "warmup_max_lr")) {
    return why;
  }
  if (values.source("learning_rate").kind > values.source("scheduler.params.warmup_max_lr").kind) {
    return fmt::format("learning_rate {} ({}) is the stronger",
                       shown(values["learning_rate"]),
                       values.source("learning_rate").text);
  }
  return std::nullopt;
}

Json default_in_force(const Declaration& key) {
  const RunConfig untouched;
  return key.field.get(untouched);
}

// Transformers' lr_scheduler_kwargs.NAME.
template <typename Member>
Declaration kwarg(const char* name, ValueType type, Range range, const char* help, Member member) {
  const std::string parameter = name;
  Declaration key{.name = "lr_scheduler_kwargs." + parameter,
                  .type = type,
                  .range = range,
                  .section = kSection,
                  .commands = kTrainOnly,
                  .help = help};
  key.without_effect = [parameter](const Values& values) {
    return arithmetic::is_deepspeed(kind_of(values)) ? std::optional(schedule_in_force(values))
                                                     : unless_taken(values, parameter);
  };
  key.field = field(&RunConfig::schedule, &ScheduleSettings::curve, member);
  return key;
}

// DeepSpeed's scheduler.params.NAME.
Declaration deepspeed_parameter(
    const char* name, ValueType type, Range range, const char* help, Field field) {
  const std::string parameter = name;
  Declaration key{.name = "scheduler.params." + parameter,
                  .type = type,
                  .range = range,
                  .section = kSection,
                  .commands = kTrainOnly,
                  .help = help};
  key.field = std::move(field);
  key.without_effect = [parameter](const Values& values) {
    return unless_taken(values, parameter);
  };
  key.deepspeed = {key.name};
  key.default_value = default_in_force(key);
  return key;
}

template <typename Member>
Declaration warmup(const char* name, ValueType type, Range range, const char* help, Member member) {
  return deepspeed_parameter(
      name, type, range, help, field(&RunConfig::schedule, &ScheduleSettings::warmup, member));
}

template <typename Enum>
Declaration with_choices(Declaration key) {
  key.choices = choices_of<Enum>();
  key.default_value = default_in_force(key);
  return key;
}

// {"num_cycles": 2} says lr_scheduler_kwargs.num_cycles 2.
std::vector<Part> kwargs(const Json& value) {
  std::vector<Part> parts;
  for (const auto& [name, inner] : value.items()) {
    const Declaration* key = find_declaration("lr_scheduler_kwargs." + name);
    if (key == nullptr) {
      throw Error(ErrorKind::kConfig, fmt::format("has no \"{}\"", name));
    }
    const ParsedValue parsed =
        parse_value(*key, inner.is_string() ? inner.get<std::string>() : inner.dump());
    if (!parsed.error.empty()) {
      throw Error(ErrorKind::kConfig, fmt::format("{} {}", name, parsed.error));
    }
    parts.push_back({key->name, parsed.value});
  }
  return parts;
}

Declarations length_keys() {
  return {
      {.name = "num_train_epochs",
       .aliases = {"epochs"},
       .type = ValueType::kNumber,
       .range = {.min = 0, .max = 1e6, .min_excluded = true},
       .default_value = 3.0,
       .unit = "epochs",
       .section = kSection,
       .commands = kTrainOnly,
       .help = "passes over the rows",
       .without_effect = only_without_max_steps,
       .field = field(&RunConfig::schedule, &ScheduleSettings::num_train_epochs)},
      {.name = "max_steps",
       .type = ValueType::kInteger,
       .range = {.min = 1, .max = 1e15, .also = -1},
       .default_value = -1,
       .unit = "updates",
       .section = kSection,
       .commands = kTrainOnly,
       .help = "updates to make, skipped attempts included; beats num_train_epochs; "
               "-1: the epochs decide",
       .field = field(&RunConfig::schedule, &ScheduleSettings::max_steps)},
      {.name = "lr_scheduler_type",
       .aliases = {"lr_scheduler"},
       .deepspeed = {"scheduler.type"},
       .type = ValueType::kChoice,
       .choices = choices_of<ScheduleKind>(),
       .refused_choices = {{"reduce_lr_on_plateau",
                            "a rate that depends on evaluations cannot be told beforehand; use "
                            "cosine or warmup_stable_decay"}},
       .default_value = "linear",
       .section = kSection,
       .commands = kTrainOnly,
       .help = "how the learning rate goes after the warm-up",
       .field = field(&RunConfig::schedule, &ScheduleSettings::kind)},
      {.name = "lr_scheduler_kwargs",
       .type = ValueType::kMap,
       .section = kSection,
       .commands = kTrainOnly,
       .help = "further settings of the schedule, e.g. {\"num_cycles\": 2}",
       .parts = kwargs},
  };
}

Declarations warmup_keys() {
  return {
      {.name = "warmup_steps",
       .deepspeed = {"scheduler.params.warmup_num_steps"},
       .type = ValueType::kInteger,
       .range = {.min = 0, .max = 1e15},
       .default_value = 0,
       .may_be_auto = true,
       .unit = "updates",
       .section = kSection,
       .commands = kTrainOnly,
       .help = "updates over which the learning rate rises from 0; beats warmup_ratio; DeepSpeed's "
               "schedules have 1000 where neither is given",
       .without_effect = only_with_warmup,
       .rule = [](const Values& values) -> std::optional<RuleValue> {
         const bool deepspeed = arithmetic::is_deepspeed(kind_of(values));
         if (!deepspeed || values.given("warmup_ratio")) {
           return std::nullopt;
         }
         return values.setting("warmup_steps").auto_in.empty()
                    ? RuleValue{1000, "DeepSpeed's default"}
                    : RuleValue{1, "no warm-up is asked for, and 1 is DeepSpeed's least"};
       },
       .field = field(&RunConfig::schedule, &ScheduleSettings::warmup_steps)},
      {.name = "warmup_ratio",
       .type = ValueType::kNumber,
       .range = kShare,
       .default_value = 0.0,
       .unit = "share of all updates",
       .section = kSection,
       .commands = kTrainOnly,
       .help = "the same as a share of all updates",
       .without_effect = only_without_warmup_steps,
       .field = field(&RunConfig::schedule, &ScheduleSettings::warmup_ratio)},
  };
}

Declarations kwarg_keys() {
  constexpr Range kCount{.min = 0, .max = 1e15};
  const auto number = ValueType::kNumber;
  Declarations keys{
      kwarg("num_cycles",
            number,
            {.min = 0, .max = 1e6},
            "waves of a cosine",
            &CurveParameters::num_cycles),
      kwarg("lr_end", number, kNotNegative, "polynomial: the last rate", &CurveParameters::lr_end),
      kwarg("power", number, kNotNegative, "polynomial: its power", &CurveParameters::power),
      kwarg("timescale",
            ValueType::kInteger,
            {.min = 1, .max = 1e15},
            "inverse_sqrt: updates after which the rate halves",
            &CurveParameters::timescale),
      kwarg("min_lr", number, kNotNegative, "the least rate", &CurveParameters::min_lr),
      kwarg("min_lr_rate",
            number,
            kShare,
            "the least rate / the highest",
            &CurveParameters::min_lr_rate),
      kwarg("warmup_lr_rate",
            number,
            kShare,
            "the first rate / the highest",
            &CurveParameters::warmup_lr_rate),
      kwarg("num_decay_steps",
            ValueType::kInteger,
            kCount,
            "warmup_stable_decay: updates of the last slope",
            &CurveParameters::num_decay_steps),
      kwarg("num_stable_steps",
            ValueType::kInteger,
            kCount,
            "warmup_stable_decay: updates at the highest rate",
            &CurveParameters::num_stable_steps),
      with_choices<arithmetic::Slope>(kwarg("warmup_type",
                                            ValueType::kChoice,
                                            {},
                                            "warmup_stable_decay: the first slope's shape",
                                            &CurveParameters::warmup_type)),
      with_choices<arithmetic::Slope>(kwarg("decay_type",
                                            ValueType::kChoice,
                                            {},
                                            "warmup_stable_decay: the last slope's shape",
                                            &CurveParameters::decay_type)),
      kwarg("min_lr_ratio",
            number,
            kShare,
            "warmup_stable_decay: the last rate / the highest",
            &CurveParameters::min_lr_ratio),
  };
  for (Declaration& key : keys) {
    key.default_value = default_in_force(key);
  }
  return keys;
}

Declarations deepspeed_warmup_keys() {
  const auto number = ValueType::kNumber;
  Declarations keys{
      warmup("warmup_min_lr",
             number,
             kNotNegative,
             "the rate of the first updates",
             &WarmupParameters::warmup_min_lr),
      deepspeed_parameter("warmup_max_lr",
                          number,
                          kNotNegative,
                          "the highest rate; without it, learning_rate",
                          field(&RunConfig::schedule, &ScheduleSettings::warmup_max_lr)),
      deepspeed_parameter("total_num_steps",
                          ValueType::kInteger,
                          {.min = 1, .max = 1e15},
                          "updates until the rate is at its end; without it, those of the run",
                          field(&RunConfig::schedule, &ScheduleSettings::total_num_steps)),
      warmup("warmup_min_ratio",
             number,
             kShare,
             "WarmupCosineLR: the first rate / the highest",
             &WarmupParameters::warmup_min_ratio),
      warmup("cos_min_ratio",
             number,
             kShare,
             "WarmupCosineLR: the last rate / the highest",
             &WarmupParameters::cos_min_ratio),
      with_choices<arithmetic::WarmupType>(warmup("warmup_type",
                                                  ValueType::kChoice,
                                                  {},
                                                  "the shape of the warm-up",
                                                  &WarmupParameters::warmup_type)),
  };
  for (Declaration& key : keys) {
    if (key.name == "scheduler.params.warmup_max_lr") {
      key.without_effect = peak_elsewhere;
    }
    key.may_be_auto = key.name == "scheduler.params.warmup_min_lr" ||
                      key.name == "scheduler.params.warmup_max_lr" || key.name == kTotal;
  }
  return keys;
}

// DeepSpeed leaves momentum alone where the optimizer has no betas.
Declaration moves_betas(Declaration key) {
  key.without_effect = [in_schedule = key.without_effect](const Values& values) {
    const auto why = in_schedule(values);
    return why ? why : unless_optimizer_takes(values, "betas");
  };
  return key;
}

template <typename Member>
Declaration one_cycle(
    const char* name, ValueType type, Range range, const char* help, Member member) {
  return deepspeed_parameter(
      name, type, range, help, field(&RunConfig::schedule, &ScheduleSettings::one_cycle, member));
}

Declarations one_cycle_keys() {
  const auto number = ValueType::kNumber;
  const auto integer = ValueType::kInteger;
  constexpr Range kCount{.min = 0, .max = 1e15};
  constexpr Range kMomentum{.min = 0, .max = 1, .max_excluded = true};
  using O = OneCycleParameters;
  return {
      one_cycle(
          "cycle_min_lr", number, kNotNegative, "OneCycle: the lowest rate", &O::cycle_min_lr),
      one_cycle(
          "cycle_max_lr", number, kNotNegative, "OneCycle: the highest rate", &O::cycle_max_lr),
      one_cycle("decay_lr_rate",
                number,
                kNotNegative,
                "OneCycle: decay after the cycle",
                &O::decay_lr_rate),
      one_cycle("cycle_first_step_size",
                integer,
                {.min = 1, .max = 1e15},
                "OneCycle: updates of the rise",
                &O::cycle_first_step_size),
      one_cycle("cycle_second_step_size",
                integer,
                {.min = 1, .max = 1e15},
                "OneCycle: updates of the fall; without it, as many",
                &O::cycle_second_step_size),
      one_cycle("cycle_first_stair_count",
                integer,
                kCount,
                "OneCycle: stairs of the rise; 0: none",
                &O::cycle_first_stair_count),
      one_cycle("cycle_second_stair_count",
                integer,
                kCount,
                "OneCycle: stairs of the fall; without it, as many",
                &O::cycle_second_stair_count),
      one_cycle("decay_step_size",
                integer,
                kCount,
                "OneCycle: updates of one decay after the cycle; 0: none",
                &O::decay_step_size),
      moves_betas(
          one_cycle("cycle_momentum",
                    ValueType::kBoolean,
                    {},
                    "OneCycle: the betas of AdamW, Adam, Lion and LAMB move against the rate",
                    &O::cycle_momentum)),
      moves_betas(one_cycle("cycle_min_mom",
                            number,
                            kMomentum,
                            "OneCycle: the lowest first beta",
                            &O::cycle_min_mom)),
      moves_betas(one_cycle("cycle_max_mom",
                            number,
                            kMomentum,
                            "OneCycle: the highest first beta",
                            &O::cycle_max_mom)),
      moves_betas(one_cycle("decay_mom_rate",
                            number,
                            kNotNegative,
                            "OneCycle: decay of the first beta after the cycle",
                            &O::decay_mom_rate)),
  };
}

template <typename Member>
Declaration range_test(
    const char* name, ValueType type, Range range, const char* help, Member member) {
  return deepspeed_parameter(
      name, type, range, help, field(&RunConfig::schedule, &ScheduleSettings::range_test, member));
}

Declarations range_test_keys() {
  using R = RangeTestParameters;
  return {
      range_test("lr_range_test_min_lr",
                 ValueType::kNumber,
                 kPositive,
                 "LRRangeTest: the first rate",
                 &R::lr_range_test_min_lr),
      range_test("lr_range_test_step_size",
                 ValueType::kInteger,
                 {.min = 1, .max = 1e15},
                 "LRRangeTest: updates of one step",
                 &R::lr_range_test_step_size),
      range_test("lr_range_test_step_rate",
                 ValueType::kNumber,
                 kPositive,
                 "LRRangeTest: how much a step adds, in first rates",
                 &R::lr_range_test_step_rate),
      range_test("lr_range_test_staircase",
                 ValueType::kBoolean,
                 {},
                 "LRRangeTest: stairs instead of a slope",
                 &R::lr_range_test_staircase),
  };
}

}  // namespace

Declarations schedule_keys() {
  Declarations keys;
  for (Declarations part : {length_keys(),
                            warmup_keys(),
                            kwarg_keys(),
                            deepspeed_warmup_keys(),
                            one_cycle_keys(),
                            range_test_keys()}) {
    std::move(part.begin(), part.end(), std::back_inserter(keys));
  }
  return keys;
}

}  // namespace zeroth::config
