#include <algorithm>
#include <cmath>
#include <numbers>

#include "arithmetic/curves.h"

// Each function gives the rate divided by the peak, unless it is named _rate. The order of
// operations is Transformers', so that results agree to the last bit or two.
namespace zeroth::arithmetic {
namespace {

constexpr std::int64_t kTimescaleWithoutWarmup = 10'000;

double as_double(std::int64_t value) {
  return static_cast<double>(value);
}

double ratio(std::int64_t part, std::int64_t whole) {
  return as_double(part) / as_double(std::max<std::int64_t>(1, whole));
}

// 0 after the warm-up, 1 at total_updates, and on from there.
double progress(const Schedule& schedule, std::int64_t update) {
  return ratio(update - schedule.warmup_updates, schedule.total_updates - schedule.warmup_updates);
}

// From 1 down to 0 and up again, one full wave a cycle.
double waves(double cycles, double progress) {
  return 0.5 * (1.0 + std::cos(std::numbers::pi * cycles * 2.0 * progress));
}

double between(double low, double factor) {
  return factor * (1.0 - low) + low;
}

double linear(const Schedule& schedule, std::int64_t update) {
  return std::max(
      0.0,
      ratio(schedule.total_updates - update, schedule.total_updates - schedule.warmup_updates));
}

double cosine(const Schedule& schedule, std::int64_t update) {
  const double cycles = schedule.curve.num_cycles.value_or(0.5);
  return std::max(0.0, waves(cycles, progress(schedule, update)));
}

double cosine_with_restarts(const Schedule& schedule, std::int64_t update) {
  const double done = progress(schedule, update);
  if (done >= 1) {
    return 0;
  }
  const double within_cycle = std::fmod(schedule.curve.num_cycles.value_or(1) * done, 1.0);
  return std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * within_cycle)));
}

double polynomial_rate(const Schedule& schedule, std::int64_t update) {
  const CurveParameters& curve = schedule.curve;
  if (update > schedule.total_updates) {
    return curve.lr_end;
  }
  const double left = std::max(0.0, 1 - progress(schedule, update));
  return (schedule.peak - curve.lr_end) * std::pow(left, curve.power) + curve.lr_end;
}

double inverse_sqrt(const Schedule& schedule, std::int64_t update) {
  const std::int64_t unset =
      schedule.warmup_updates > 0 ? schedule.warmup_updates : kTimescaleWithoutWarmup;
  const double timescale = as_double(schedule.curve.timescale.value_or(unset));
  return 1.0 / std::sqrt((as_double(update - schedule.warmup_updates) + timescale) / timescale);
}

// min_lr itself rather than its ratio to the peak: a peak of 0 divides nothing.
double cosine_above_minimum_rate(const Schedule& schedule, double progress) {
  const CurveParameters& curve = schedule.curve;
  const double low = curve.min_lr.value_or(curve.min_lr_rate.value_or(0) * schedule.peak);
  const double factor = waves(curve.num_cycles.value_or(0.5), progress);
  return std::max(0.0, factor * (schedule.peak - low) + low);
}

// This one kind counts from 1: its first update is no longer at 0, and its cosine ends one update
// before total_updates.
double cosine_warmup_with_min_lr_rate(const Schedule& schedule, std::int64_t update) {
  const std::int64_t warmup = schedule.warmup_updates;
  if (update >= warmup) {
    return cosine_above_minimum_rate(schedule, progress(schedule, update + 1));
  }
  if (const auto first = schedule.curve.warmup_lr_rate) {
    return schedule.peak * between(*first, ratio(update, warmup - 1));
  }
  return schedule.peak * ratio(update + 1, warmup);
}

double rising(Slope slope, double progress) {
  switch (slope) {
    case Slope::kLinear:
      break;
    case Slope::kCosine:
      return 0.5 * (1.0 - std::cos(std::numbers::pi * progress));
    case Slope::kOneMinusSqrt:
      return 1.0 - std::sqrt(1.0 - progress);
  }
  return progress;
}

double falling(Slope slope, double progress, double cycles) {
  switch (slope) {
    case Slope::kLinear:
      break;
    case Slope::kCosine:
      return waves(cycles, progress);
    case Slope::kOneMinusSqrt:
      return 1.0 - std::sqrt(progress);
  }
  return 1.0 - progress;
}

double warmup_stable_decay(const Schedule& schedule, std::int64_t update) {
  const CurveParameters& curve = schedule.curve;
  const std::int64_t warmup = schedule.warmup_updates;
  if (update < warmup) {
    return std::max(0.0,
                    between(curve.min_lr_ratio, rising(curve.warmup_type, ratio(update, warmup))));
  }
  const auto [stable, decay] = stable_and_decay(schedule);
  const std::int64_t into_decay = update - warmup - stable;
  if (into_decay < 0) {
    return 1;
  }
  if (into_decay >= decay) {
    return curve.min_lr_ratio;
  }
  const double fallen =
      falling(curve.decay_type, ratio(into_decay, decay), curve.num_cycles.value_or(0.5));
  return std::max(0.0, between(curve.min_lr_ratio, fallen));
}

}  // namespace

StableAndDecay stable_and_decay(const Schedule& schedule) noexcept {
  const CurveParameters& curve = schedule.curve;
  const std::int64_t left = schedule.total_updates - schedule.warmup_updates;
  if (curve.num_decay_steps) {
    return {curve.num_stable_steps.value_or(left - *curve.num_decay_steps), *curve.num_decay_steps};
  }
  const std::int64_t stable = curve.num_stable_steps.value_or(left / 3);
  return {stable, left - stable};
}

double transformers_rate(const Schedule& schedule, std::int64_t update) noexcept {
  const double peak = schedule.peak;
  switch (schedule.kind) {  // first those whose warm-up is their own
    case ScheduleKind::kConstant:
      return peak;
    case ScheduleKind::kCosineWarmupWithMinLr:
      return cosine_warmup_with_min_lr_rate(schedule, update);
    case ScheduleKind::kWarmupStableDecay:
      return peak * warmup_stable_decay(schedule, update);
    default:
      break;
  }
  if (update < schedule.warmup_updates) {
    return peak * ratio(update, schedule.warmup_updates);
  }
  switch (schedule.kind) {
    case ScheduleKind::kLinear:
      return peak * linear(schedule, update);
    case ScheduleKind::kCosine:
      return peak * cosine(schedule, update);
    case ScheduleKind::kCosineWithRestarts:
      return peak * cosine_with_restarts(schedule, update);
    case ScheduleKind::kPolynomial:
      return polynomial_rate(schedule, update);
    case ScheduleKind::kInverseSqrt:
      return peak * inverse_sqrt(schedule, update);
    case ScheduleKind::kCosineWithMinLr:
      return cosine_above_minimum_rate(schedule, progress(schedule, update));
    default:
      return peak;
  }
}

}  // namespace zeroth::arithmetic
