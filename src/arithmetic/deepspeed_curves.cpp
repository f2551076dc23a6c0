#include <algorithm>
#include <cmath>
#include <numbers>

#include "arithmetic/curves.h"

// Written in DeepSpeed's own index, which is the number of finished updates less one (see [Note:
// schedule index]).
namespace zeroth::arithmetic {
namespace {

double as_double(std::int64_t value) {
  return static_cast<double>(value);
}

// From 0 towards 1 while index < deepspeed_warmup.
double warmup_share(const Schedule& schedule, std::int64_t index) {
  const double warmup = as_double(deepspeed_warmup(schedule));
  if (schedule.warmup.warmup_type == WarmupType::kLinear) {
    return as_double(index) / warmup;
  }
  return 1.0 / std::log(warmup) * std::log(as_double(index + 1));
}

// WarmupLR and WarmupDecayLR: how far the rate is from the minimum to the peak.
double rise_and_decay(const Schedule& schedule, std::int64_t index) {
  const std::int64_t warmup = deepspeed_warmup(schedule);
  if (index < warmup) {
    return warmup_share(schedule, index);
  }
  if (schedule.kind == ScheduleKind::kWarmupLr) {
    return 1;
  }
  const double left = as_double(schedule.total_updates - index);
  return std::max(0.0, left / std::max(1.0, as_double(schedule.total_updates - warmup)));
}

double warmup_rate(const Schedule& schedule, std::int64_t index) {
  const double low = schedule.warmup.warmup_min_lr;
  return index < 0 ? low : low + (schedule.peak - low) * rise_and_decay(schedule, index);
}

double warmup_cosine_rate(const Schedule& schedule, std::int64_t index) {
  const WarmupParameters& warmup = schedule.warmup;
  const std::int64_t warmup_steps = deepspeed_warmup(schedule);
  if (index < 0) {
    return 0;
  }
  if (index < warmup_steps) {
    const double low = warmup.warmup_min_ratio;
    return schedule.peak * (low + warmup_share(schedule, index) * (1 - low));
  }
  const double after = std::max(1.0, as_double(schedule.total_updates - warmup_steps));
  const double progress = std::min(1.0, as_double(index - warmup_steps + 1) / after);
  const double wave = (1 + std::cos(std::numbers::pi * progress)) / 2;
  const double low = warmup.cos_min_ratio;
  return schedule.peak * std::max(0.0, low + (1 - low) * wave);
}

// The up and down of one cycle, counted in updates from 0.
struct Cycle {
  std::int64_t first = 1;
  std::int64_t second = 1;
  std::int64_t first_stairs = 0;
  std::int64_t second_stairs = 0;

  [[nodiscard]] std::int64_t total() const noexcept { return first + second; }
};

Cycle cycle_of(const OneCycleParameters& parameters) {
  const std::int64_t first = parameters.cycle_first_step_size;
  const std::int64_t stairs = parameters.cycle_first_stair_count;
  return {.first = first,
          .second = parameters.cycle_second_step_size.value_or(first),
          .first_stairs = stairs,
          .second_stairs = parameters.cycle_second_stair_count.value_or(stairs)};
}

// 0 at the ends of a half cycle's low side, 1 at its top; with stairs, the step below.
double height(std::int64_t position, std::int64_t size, std::int64_t stairs) {
  const double share = as_double(position) / as_double(size);
  if (stairs == 0) {
    return share;
  }
  const double stair = as_double(position) * as_double(stairs) / as_double(size);
  return std::floor(stair) / as_double(stairs);
}

double cycle_height(const Cycle& cycle, std::int64_t update) {
  const std::int64_t position = update % cycle.total();
  return position <= cycle.first
             ? height(position, cycle.first, cycle.first_stairs)
             : height(cycle.total() - position, cycle.second, cycle.second_stairs);
}

// 1 + rate x intervals since the cycle's end; 1 where the decay is off. `update` is past the cycle.
double decay_factor(const OneCycleParameters& parameters, double rate, std::int64_t update) {
  if (parameters.decay_step_size == 0) {
    return 1;
  }
  const std::int64_t since = update - cycle_of(parameters).total();
  return 1 + rate * (as_double(since) / as_double(parameters.decay_step_size));
}

double one_cycle_rate(const OneCycleParameters& parameters, std::int64_t update) {
  const Cycle cycle = cycle_of(parameters);
  const double low = parameters.cycle_min_lr;
  if (update <= cycle.total()) {
    return low + (parameters.cycle_max_lr - low) * cycle_height(cycle, update);
  }
  return low / decay_factor(parameters, parameters.decay_lr_rate, update);
}

double range_test_rate(const RangeTestParameters& parameters, std::int64_t update) {
  const double steps = as_double(update) / as_double(parameters.lr_range_test_step_size);
  const double interval = parameters.lr_range_test_staircase ? std::floor(steps) : steps;
  return parameters.lr_range_test_min_lr * (1 + parameters.lr_range_test_step_rate * interval);
}

}  // namespace

std::int64_t deepspeed_warmup(const Schedule& schedule) noexcept {
  return std::max<std::int64_t>(2, schedule.warmup_updates);
}

// Until its first step, DeepSpeed's constructor leaves the momentum at the minimum, though the rate
// is at its minimum too.
Betas one_cycle_betas(const OneCycleParameters& parameters, std::int64_t update) noexcept {
  constexpr double kSecondBeta = 0.99;  // fixed in DeepSpeed
  const Cycle cycle = cycle_of(parameters);
  const double high = parameters.cycle_max_mom;
  if (update <= 0) {
    return {parameters.cycle_min_mom, kSecondBeta};
  }
  if (update <= cycle.total()) {
    return {high - (high - parameters.cycle_min_mom) * cycle_height(cycle, update), kSecondBeta};
  }
  return {high * decay_factor(parameters, parameters.decay_mom_rate, update), kSecondBeta};
}

double deepspeed_rate(const Schedule& schedule, std::int64_t update) noexcept {
  switch (schedule.kind) {
    case ScheduleKind::kOneCycle:
      return one_cycle_rate(schedule.one_cycle, update);
    case ScheduleKind::kLrRangeTest:
      return range_test_rate(schedule.range_test, update);
    case ScheduleKind::kWarmupCosineLr:
      return warmup_cosine_rate(schedule, update - 1);
    default:
      return warmup_rate(schedule, update - 1);
  }
}

}  // namespace zeroth::arithmetic
