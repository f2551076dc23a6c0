#include <filesystem>
#include <functional>
#include <map>

#include "arithmetic/schedule.h"
#include "base/file.h"
#include "base/json.h"
#include <gtest/gtest.h>

// Every schedule against rates that were computed elsewhere.
namespace zeroth::arithmetic {
namespace {

Json read(const std::string& path) {
  return parse_json(read_file(path, ErrorKind::kDisk), path, ErrorKind::kFormat);
}

using Setters = std::map<std::string, std::function<void(Schedule&, const Json&)>>;

template <typename Part, typename Value>
auto setter(Part Schedule::*part, Value Part::*field) {
  return [part, field](Schedule& schedule, const Json& value) {
    if constexpr (requires { typename Value::value_type; }) {
      schedule.*part.*field = value.get<typename Value::value_type>();
    } else {
      schedule.*part.*field = value.get<Value>();
    }
  };
}

void set_warmup_type(Schedule& schedule, const Json& value) {
  const auto name = value.get<std::string>();
  if (is_deepspeed(schedule.kind)) {
    schedule.warmup.warmup_type = warmup_type_named(name).value();
  } else {
    schedule.curve.warmup_type = slope_named(name).value();
  }
}

#define ZEROTH_SETTER(part, type, name) \
  { #name, setter(&Schedule::part, &type::name) }

const Setters& setters() {
  static const Setters kSetters = {
      ZEROTH_SETTER(curve, CurveParameters, num_cycles),
      ZEROTH_SETTER(curve, CurveParameters, lr_end),
      ZEROTH_SETTER(curve, CurveParameters, power),
      ZEROTH_SETTER(curve, CurveParameters, timescale),
      ZEROTH_SETTER(curve, CurveParameters, min_lr),
      ZEROTH_SETTER(curve, CurveParameters, min_lr_rate),
      ZEROTH_SETTER(curve, CurveParameters, warmup_lr_rate),
      ZEROTH_SETTER(curve, CurveParameters, num_decay_steps),
      ZEROTH_SETTER(curve, CurveParameters, num_stable_steps),
      ZEROTH_SETTER(curve, CurveParameters, min_lr_ratio),
      ZEROTH_SETTER(warmup, WarmupParameters, warmup_min_lr),
      ZEROTH_SETTER(warmup, WarmupParameters, warmup_min_ratio),
      ZEROTH_SETTER(warmup, WarmupParameters, cos_min_ratio),
      ZEROTH_SETTER(one_cycle, OneCycleParameters, cycle_min_lr),
      ZEROTH_SETTER(one_cycle, OneCycleParameters, cycle_max_lr),
      ZEROTH_SETTER(one_cycle, OneCycleParameters, decay_lr_rate),
      ZEROTH_SETTER(one_cycle, OneCycleParameters, cycle_first_step_size),
      ZEROTH_SETTER(one_cycle, OneCycleParameters, cycle_second_step_size),
      ZEROTH_SETTER(one_cycle, OneCycleParameters, cycle_first_stair_count),
      ZEROTH_SETTER(one_cycle, OneCycleParameters, cycle_second_stair_count),
      ZEROTH_SETTER(one_cycle, OneCycleParameters, decay_step_size),
      ZEROTH_SETTER(one_cycle, OneCycleParameters, cycle_min_mom),
      ZEROTH_SETTER(one_cycle, OneCycleParameters, cycle_max_mom),
      ZEROTH_SETTER(one_cycle, OneCycleParameters, decay_mom_rate),
      ZEROTH_SETTER(range_test, RangeTestParameters, lr_range_test_min_lr),
      ZEROTH_SETTER(range_test, RangeTestParameters, lr_range_test_step_size),
      ZEROTH_SETTER(range_test, RangeTestParameters, lr_range_test_step_rate),
      ZEROTH_SETTER(range_test, RangeTestParameters, lr_range_test_staircase),
      {"decay_type",
       [](Schedule& schedule, const Json& value) {
         schedule.curve.decay_type = slope_named(value.get<std::string>()).value();
       }},
      {"warmup_type", set_warmup_type}};
  return kSetters;
}

#undef ZEROTH_SETTER

Schedule schedule_of(const Json& golden) {
  Schedule schedule{.kind = schedule_named(golden.at("kind").get<std::string>()).value(),
                    .peak = golden.at("peak"),
                    .warmup_updates = golden.at("warmup_updates"),
                    .total_updates = golden.at("total_updates")};
  for (const auto& [name, value] : golden.at("params").items()) {
    setters().at(name)(schedule, value);
  }
  return schedule;
}

std::string title(const Json& golden) {
  return golden.at("kind").get<std::string>() + golden.at("params").dump();
}

TEST(GoldenSchedules, EveryRateIsThatOfTheIndependentScript) {
  const Json cases = read(ZEROTH_SOURCE_DIR "/tests/golden/schedules.json");
  for (const Json& golden : cases) {
    const Schedule schedule = schedule_of(golden);
    const auto rates = golden.at("rates").get<std::vector<double>>();
    EXPECT_TRUE(problems_of(schedule).empty()) << title(golden);
    for (std::size_t i = 0; i < rates.size(); ++i) {
      EXPECT_NEAR(schedule.at(static_cast<std::int64_t>(i)), rates[i], 1e-15)
          << title(golden) << " at " << i;
    }
  }
  EXPECT_EQ(cases.size(), 37);
}

TEST(GoldenSchedules, EveryKindAndEveryParameterOccurs) {
  std::map<std::string, int> seen;
  for (const Json& golden : read(ZEROTH_SOURCE_DIR "/tests/golden/schedules.json")) {
    ++seen[golden.at("kind").get<std::string>()];
    for (const auto& [name, value] : golden.at("params").items()) {
      ++seen[name];
    }
  }
  for (const ScheduleKind kind : all_schedules()) {
    EXPECT_TRUE(seen.contains(std::string(name_of(kind)))) << name_of(kind);
  }
  for (const auto& [name, set] : setters()) {
    EXPECT_TRUE(seen.contains(name)) << name;
  }
}

TEST(GoldenSchedules, OneCycleMovesTheBetas) {
  int checked = 0;
  for (const Json& golden : read(ZEROTH_SOURCE_DIR "/tests/golden/schedules.json")) {
    if (!golden.contains("betas")) {
      EXPECT_FALSE(schedule_of(golden).betas_at(3)) << title(golden);
      continue;
    }
    std::int64_t update = 0;
    for (const Json& betas : golden.at("betas")) {
      const Betas ours = schedule_of(golden).betas_at(update++).value();
      EXPECT_NEAR(ours.first, betas.at(0).get<double>(), 1e-15) << title(golden) << update;
      EXPECT_EQ(ours.second, 0.99);
      ++checked;
    }
  }
  EXPECT_GT(checked, 70);
}

TEST(RealTraces, TheTrainerOfTransformersUsesTheseRates) {
  const Json info = read(ZEROTH_SOURCE_DIR "/tests/golden/transformers/trainer/info.json");
  for (const char* run :
       {"llama3_trainer_const", "llama3_trainer_cosine_wd", "qwen3_trainer_linear_wd"}) {
    const Json& trace = info.at("runs").at(run);
    const Json& args = trace.at("args");
    const auto kind = schedule_named(args.at("lr_scheduler_type").get<std::string>());
    const std::int64_t ratio_updates = args.at("warmup_ratio").get<double>() > 0 ? 1 : 0;
    const Schedule schedule{
        .kind = kind.value(),
        .peak = args.at("learning_rate"),
        .warmup_updates = args.at("warmup_steps").get<std::int64_t>() + ratio_updates,
        .total_updates = 5};
    int updates = 0;
    for (const Json& log : trace.at("log")) {
      if (log.contains("learning_rate")) {
        EXPECT_DOUBLE_EQ(schedule.at(updates++), log.at("learning_rate").get<double>()) << run;
      }
    }
    EXPECT_EQ(updates, 5) << run;
  }
}

TEST(RealTraces, DeepSpeedsOwnRunUsesTheseRates) {
  const std::string folder = ZEROTH_SOURCE_DIR "/../shared/data/reference/deepspeed/";
  if (!std::filesystem::exists(folder)) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  for (const char* file : {"stage1-trace.json", "stage2-trace.json", "stage3-trace.json"}) {
    const Json run = read(folder + file);
    const Json& params = run.at("config").at("scheduler").at("params");
    const Schedule schedule{
        .kind = ScheduleKind::kWarmupLr,
        .peak = params.at("warmup_max_lr"),
        .warmup_updates = params.at("warmup_num_steps"),
        .warmup = {
            .warmup_type = warmup_type_named(params.at("warmup_type").get<std::string>()).value(),
            .warmup_min_lr = params.at("warmup_min_lr")}};
    std::int64_t update = 0;
    for (const Json& step : run.at("trace")) {
      EXPECT_DOUBLE_EQ(schedule.at(update), step.at("lr_used").get<double>()) << file;
      EXPECT_DOUBLE_EQ(schedule.at(++update), step.at("lr_next").get<double>()) << file;
    }
    EXPECT_EQ(update, 8);
  }
}

}  // namespace
}  // namespace zeroth::arithmetic
