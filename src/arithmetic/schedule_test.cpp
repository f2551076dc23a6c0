#include "arithmetic/schedule.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

namespace zeroth::arithmetic {
namespace {

// One of each kind, all parameters valid.
Schedule valid(ScheduleKind kind) {
  Schedule schedule{.kind = kind, .peak = 1e-3, .warmup_updates = 10, .total_updates = 100};
  if (kind == ScheduleKind::kCosineWithMinLr || kind == ScheduleKind::kCosineWarmupWithMinLr) {
    schedule.curve.min_lr_rate = 0.1;
  }
  schedule.one_cycle.cycle_min_lr = 1e-4;
  schedule.one_cycle.cycle_max_lr = 1e-3;
  return schedule;
}

std::string first_problem(const Schedule& schedule) {
  const std::vector<ScheduleProblem> problems = problems_of(schedule);
  return problems.empty() ? "" : problems.front().parameter + " " + problems.front().message;
}

TEST(N10, WarmUpCountsUpdates) {
  const Schedule schedule{
      .kind = ScheduleKind::kLinear, .peak = 1e-3, .warmup_updates = 100, .total_updates = 1000};
  EXPECT_DOUBLE_EQ(schedule.at(25), 2.5e-4);
}

TEST(N11, CosineReachesHalfInTheMiddleAndZeroAtTheEnd) {
  const Schedule schedule{.kind = ScheduleKind::kCosine, .peak = 1.0, .total_updates = 50};
  EXPECT_NEAR(schedule.at(25), 0.5, 1e-12);
  EXPECT_NEAR(schedule.at(50), 0.0, 1e-12);
}

TEST(N12, TheFirstUpdateOfAWarmUpHasRateZero) {
  const Schedule schedule{
      .kind = ScheduleKind::kLinear, .peak = 1e-3, .warmup_updates = 10, .total_updates = 100};
  EXPECT_EQ(schedule.at(0), 0.0);
  EXPECT_DOUBLE_EQ(schedule.at(1), 1e-4);
  EXPECT_DOUBLE_EQ(schedule.at(2), 2e-4);
}

// By hand: ln(2)/ln(4) = 1/2, ln(3)/ln(4) = 0.7924812503605781.
TEST(WarmupLr, StartsTwiceAtTheMinimumAndRisesWithTheLogarithm) {
  const Schedule schedule{.kind = ScheduleKind::kWarmupLr,
                          .peak = 1.0,
                          .warmup_updates = 4,
                          .warmup = {.warmup_min_lr = 0.25}};
  EXPECT_EQ(schedule.at(0), 0.25);
  EXPECT_EQ(schedule.at(1), 0.25);
  EXPECT_DOUBLE_EQ(schedule.at(2), 0.625);
  EXPECT_DOUBLE_EQ(schedule.at(3), 0.25 + 0.75 * 0.7924812503605781);
  EXPECT_EQ(schedule.at(5), 1.0);
  EXPECT_EQ(schedule.at(1'000'000), 1.0);
}

TEST(C44, AWarmUpOfOneIsTakenAsTwoAndLessIsRefused) {
  Schedule schedule{.kind = ScheduleKind::kWarmupLr, .peak = 1.0, .warmup_updates = 1};
  EXPECT_EQ(first_problem(schedule), "");
  EXPECT_EQ(schedule.at(1), 0.0);  // multipliers 0, 1, 1 at DeepSpeed's indices 0, 1, 2
  EXPECT_EQ(schedule.at(2), 1.0);
  EXPECT_EQ(schedule.at(3), 1.0);
  for (const std::int64_t refused : {0, -5}) {
    schedule.warmup_updates = refused;
    EXPECT_EQ(first_problem(schedule),
              "warmup_num_steps must be a positive integer, not " + std::to_string(refused));
  }
}

TEST(WarmupStableDecay, IsLlamaFactorysThirdsWhereNothingIsSaid) {
  const Schedule schedule{.kind = ScheduleKind::kWarmupStableDecay,
                          .peak = 1.0,
                          .warmup_updates = 10,
                          .total_updates = 100};
  EXPECT_EQ(schedule.at(10), 1.0);
  EXPECT_EQ(schedule.at(39), 1.0);
  EXPECT_LT(schedule.at(41), 1.0);
  EXPECT_NEAR(schedule.at(70), 0.5, 1e-12);  // half way from 40 to 100
}

TEST(Polynomial, FallsToItsEndAfterTheLastUpdateEvenWithPowerZero) {
  Schedule schedule{.kind = ScheduleKind::kPolynomial, .peak = 1, .total_updates = 10};
  schedule.curve = {.lr_end = 0.25, .power = 0};
  EXPECT_EQ(schedule.at(10), 1.0);
  EXPECT_EQ(schedule.at(11), 0.25);
}

TEST(Schedule, TheWarmupEndsAtThePeak) {
  for (const ScheduleKind kind : all_schedules()) {
    Schedule schedule = valid(kind);
    schedule.total_updates = 1'000'000;  // the fall of the update after is out of sight
    if (kind != ScheduleKind::kLrRangeTest) {
      EXPECT_NEAR(schedule.at(schedule.warmup_end()), 1e-3, 1e-9) << name_of(kind);
    }
  }
  EXPECT_EQ(valid(ScheduleKind::kLinear).warmup_end(), 10);
  EXPECT_EQ(valid(ScheduleKind::kConstant).warmup_end(), 0);
  EXPECT_EQ(valid(ScheduleKind::kWarmupLr).warmup_end(), 11);
}

TEST(Schedule, ConstantIgnoresTheWarmUpAndConstantWithWarmupDoesNot) {
  Schedule schedule{.kind = ScheduleKind::kConstant, .peak = 2, .warmup_updates = 4};
  EXPECT_EQ(schedule.at(1), 2.0);
  schedule.kind = ScheduleKind::kConstantWithWarmup;
  EXPECT_EQ(schedule.at(1), 0.5);
}

TEST(Schedule, IsFiniteAndNotNegativeWhateverTheLengths) {
  constexpr std::int64_t kFar = std::int64_t{1} << 53;
  for (const ScheduleKind kind : all_schedules()) {
    for (const std::int64_t warmup : {0, 1, 2, 5, 200}) {
      for (const std::int64_t total : {0, 1, 2, 5, 100}) {
        Schedule schedule = valid(kind);
        schedule.warmup_updates = warmup;
        schedule.total_updates = total;
        for (const std::int64_t update :
             {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, warmup, total, total + 1, kFar}) {
          EXPECT_TRUE(std::isfinite(schedule.at(update)) && schedule.at(update) >= 0)
              << name_of(kind) << " " << warmup << " " << total << " at " << update;
        }
      }
    }
  }
}

TEST(Schedule, APeakOfZeroStaysZero) {
  for (const ScheduleKind kind : all_schedules()) {
    Schedule schedule = valid(kind);
    schedule.peak = 0;
    schedule.curve.lr_end = 0;
    for (const std::int64_t update : {0, 5, 10, 50, 100}) {
      EXPECT_TRUE(!uses_peak(kind) || schedule.at(update) == 0) << name_of(kind);
    }
  }
}

TEST(Schedule, NamesFindTheirKinds) {
  EXPECT_EQ(all_schedules().size(), 15);
  for (const ScheduleKind kind : all_schedules()) {
    EXPECT_EQ(schedule_named(name_of(kind)), kind);
  }
  EXPECT_EQ(schedule_named("reduce_lr_on_plateau"), std::nullopt);
  EXPECT_EQ(schedule_named("warmuplr"), std::nullopt);
  EXPECT_EQ(slope_named("log"), std::nullopt);
  EXPECT_EQ(warmup_type_named("cosine"), std::nullopt);
  EXPECT_TRUE(is_deepspeed(ScheduleKind::kWarmupLr));
  EXPECT_FALSE(is_deepspeed(ScheduleKind::kWarmupStableDecay));
}

// What a kind says it does not use must not change a rate, and what it uses must.
TEST(Schedule, UsesWhatItSays) {
  const auto differs = [](const Schedule& a, const Schedule& b) {
    for (std::int64_t update = 0; update < 120; ++update) {
      if (a.at(update) != b.at(update)) {
        return true;
      }
    }
    return false;
  };
  for (const ScheduleKind kind : all_schedules()) {
    Schedule peak = valid(kind), warmup = valid(kind), total = valid(kind);
    peak.peak = 2e-3;
    warmup.warmup_updates = 20;
    total.total_updates = 80;
    EXPECT_EQ(differs(valid(kind), peak), uses_peak(kind)) << name_of(kind);
    EXPECT_EQ(differs(valid(kind), warmup), uses_warmup(kind)) << name_of(kind);
    EXPECT_EQ(differs(valid(kind), total), uses_total(kind)) << name_of(kind);
  }
}

struct Bad {
  ScheduleKind kind;
  std::function<void(Schedule&)> spoil;
  std::string problem;
};

TEST(ScheduleProblems, NameTheParameterAndTheRule) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double inf = std::numeric_limits<double>::infinity();
  using enum ScheduleKind;
  const std::vector<Bad> bad = {
      {kLinear, [=](Schedule& s) { s.peak = inf; }, "learning_rate"},
      {kWarmupDecayLr, [=](Schedule& s) { s.peak = nan; }, "warmup_max_lr"},
      {kWarmupCosineLr, [](Schedule& s) { s.peak = -1; }, "learning_rate"},
      {kLinear, [](Schedule& s) { s.total_updates = -1; }, "max_steps"},
      {kWarmupDecayLr, [](Schedule& s) { s.total_updates = -1; }, "total_num_steps"},
      {kLinear, [](Schedule& s) { s.warmup_updates = -1; }, "warmup_steps"},
      {kCosine, [](Schedule& s) { s.curve.num_cycles = -1; }, "num_cycles"},
      {kCosineWithRestarts, [=](Schedule& s) { s.curve.num_cycles = nan; }, "num_cycles"},
      {kPolynomial, [](Schedule& s) { s.curve.lr_end = 1e-3; }, "lr_end"},
      {kPolynomial, [](Schedule& s) { s.curve.power = -1; }, "power"},
      {kInverseSqrt, [](Schedule& s) { s.curve.timescale = 0; }, "timescale"},
      {kCosineWithMinLr, [](Schedule& s) { s.curve.min_lr_rate.reset(); }, "min_lr"},
      {kCosineWithMinLr, [](Schedule& s) { s.curve.min_lr = 1e-4; }, "min_lr"},
      {kCosineWithMinLr, [](Schedule& s) { s.curve.min_lr_rate = 1.5; }, "min_lr_rate"},
      {kCosineWarmupWithMinLr, [](Schedule& s) { s.curve.warmup_lr_rate = -1; }, "warmup_lr_rate"},
      {kWarmupStableDecay, [](Schedule& s) { s.curve.num_decay_steps = 91; }, "num_decay_steps"},
      {kWarmupStableDecay, [](Schedule& s) { s.curve.num_stable_steps = 91; }, "num_stable_steps"},
      {kWarmupStableDecay, [](Schedule& s) { s.curve.min_lr_ratio = 2; }, "min_lr_ratio"},
      {kWarmupLr, [](Schedule& s) { s.warmup.warmup_min_lr = -1; }, "warmup_min_lr"},
      {kWarmupCosineLr, [](Schedule& s) { s.warmup.cos_min_ratio = 2; }, "cos_min_ratio"},
      {kWarmupCosineLr, [](Schedule& s) { s.warmup.warmup_min_ratio = 2; }, "warmup_min_ratio"},
      {kOneCycle, [](Schedule& s) { s.one_cycle.cycle_max_lr = -1; }, "cycle_max_lr"},
      {kOneCycle, [](Schedule& s) { s.one_cycle.decay_lr_rate = -1; }, "decay_lr_rate"},
      {kOneCycle,
       [](Schedule& s) { s.one_cycle.cycle_first_step_size = 0; },
       "cycle_first_step_size"},
      {kOneCycle,
       [](Schedule& s) { s.one_cycle.cycle_second_step_size = 0; },
       "cycle_second_step_size"},
      {kOneCycle,
       [](Schedule& s) { s.one_cycle.cycle_first_stair_count = -1; },
       "cycle_first_stair_count"},
      {kOneCycle, [](Schedule& s) { s.one_cycle.decay_step_size = -1; }, "decay_step_size"},
      {kOneCycle, [](Schedule& s) { s.one_cycle.cycle_max_mom = 1; }, "cycle_max_mom"},
      {kOneCycle, [=](Schedule& s) { s.one_cycle.cycle_min_mom = nan; }, "cycle_min_mom"},
      {kOneCycle, [=](Schedule& s) { s.one_cycle.decay_mom_rate = nan; }, "decay_mom_rate"},
      {kLrRangeTest,
       [](Schedule& s) { s.range_test.lr_range_test_step_size = 0; },
       "lr_range_test_step_size"},
      {kLrRangeTest,
       [](Schedule& s) { s.range_test.lr_range_test_min_lr = -1; },
       "lr_range_test_min_lr"},
      {kLrRangeTest,
       [](Schedule& s) { s.range_test.lr_range_test_step_rate = -1; },
       "lr_range_test_step_rate"}};
  for (const Bad& one : bad) {
    Schedule schedule = valid(one.kind);
    EXPECT_EQ(first_problem(schedule), "") << name_of(one.kind);
    one.spoil(schedule);
    const std::string found = first_problem(schedule);
    EXPECT_EQ(found.substr(0, found.find(' ')), one.problem) << name_of(one.kind) << ": " << found;
  }
}

TEST(ScheduleProblems, AMomentumThatReachesOneIsRefusedOnceTheLengthIsKnown) {
  Schedule schedule = valid(ScheduleKind::kOneCycle);
  schedule.one_cycle.cycle_first_step_size = 10;
  schedule.one_cycle.decay_step_size = 1;
  schedule.one_cycle.decay_mom_rate = 0.01;
  schedule.total_updates = 0;
  EXPECT_EQ(first_problem(schedule), "");
  schedule.total_updates = 100;
  EXPECT_EQ(first_problem(schedule).substr(0, 14), "decay_mom_rate");
  schedule.one_cycle.cycle_momentum = false;
  EXPECT_EQ(first_problem(schedule), "");
  EXPECT_EQ(schedule.betas_at(50), std::nullopt);
}

TEST(ScheduleProblems, StableAndDecayStepsWaitForTheLength) {
  Schedule schedule = valid(ScheduleKind::kWarmupStableDecay);
  schedule.curve.num_decay_steps = 91;
  EXPECT_EQ(first_problem(schedule),
            "num_decay_steps 91 updates after a warm-up of 10 do not fit the 100 updates in all");
  schedule.total_updates = 0;
  EXPECT_EQ(first_problem(schedule), "");
}

// Every parameter that a kind takes can be told from its name alone: config finds them here.
TEST(Schedule, ListsItsParameters) {
  const auto has = [](ScheduleKind kind, std::string_view name) {
    const auto names = parameters_of(kind);
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  EXPECT_TRUE(parameters_of(ScheduleKind::kLinear).empty());
  EXPECT_TRUE(has(ScheduleKind::kWarmupDecayLr, "total_num_steps"));
  EXPECT_FALSE(has(ScheduleKind::kWarmupLr, "total_num_steps"));
  EXPECT_FALSE(has(ScheduleKind::kWarmupCosineLr, "warmup_max_lr"));
  EXPECT_TRUE(has(ScheduleKind::kOneCycle, "decay_mom_rate"));
}

}  // namespace
}  // namespace zeroth::arithmetic
