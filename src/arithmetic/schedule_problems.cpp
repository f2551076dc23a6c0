#include <cmath>

#include "arithmetic/curves.h"
#include <fmt/format.h>

namespace zeroth::arithmetic {
namespace {

// Beyond it neither counts nor angles are exact in a double.
constexpr std::int64_t kLargestCount = std::int64_t{1} << 53;
constexpr double kMostCycles = 1e6;
constexpr double kLargestRate = 1e9;  // so that no product of two and a count is infinite

// Collects what is wrong, parameter by parameter.
class Problems {
 public:
  void add(std::string parameter, std::string message) {
    found_.push_back({std::move(parameter), std::move(message)});
  }

  void require(bool holds, const std::string& parameter, const std::string& message) {
    if (!holds) {
      add(parameter, message);
    }
  }

  void count(const std::string& parameter, std::int64_t value, std::int64_t least) {
    const char* what = least > 0 ? "a positive integer" : "an integer of 0 or more";
    require(value >= least && value <= kLargestCount,
            parameter,
            fmt::format("must be {}, not {}", what, value));
  }

  void count(const std::string& parameter, std::optional<std::int64_t> value, std::int64_t least) {
    if (value) {
      count(parameter, *value, least);
    }
  }

  // Both ends belong to it. A number that is not finite lies in no range.
  void within(const std::string& parameter, double value, double low, double high) {
    require(value >= low && value <= high,
            parameter,
            fmt::format("must be between {} and {}, not {}", low, high, value));
  }

  void rate(const std::string& parameter, double value) {
    within(parameter, value, 0, kLargestRate);
  }

  [[nodiscard]] std::vector<ScheduleProblem> take() { return std::move(found_); }

 private:
  std::vector<ScheduleProblem> found_;
};

bool takes_num_cycles(ScheduleKind kind) {
  for (const std::string_view name : parameters_of(kind)) {
    if (name == "num_cycles") {
      return true;
    }
  }
  return false;
}

void check_polynomial(const Schedule& schedule, Problems& problems) {
  const CurveParameters& curve = schedule.curve;
  problems.rate("lr_end", curve.lr_end);
  problems.rate("power", curve.power);
  problems.require(
      curve.lr_end < schedule.peak,
      "lr_end",
      fmt::format(
          "must be smaller than the learning rate {}, not {}", schedule.peak, curve.lr_end));
}

void check_minimum(const Schedule& schedule, Problems& problems) {
  const CurveParameters& curve = schedule.curve;
  if (curve.min_lr.has_value() == curve.min_lr_rate.has_value()) {
    problems.add(
        "min_lr",
        fmt::format("{} needs either min_lr or min_lr_rate, and not both", name_of(schedule.kind)));
  }
  if (curve.min_lr) {
    problems.within("min_lr", *curve.min_lr, 0, schedule.peak);
  }
  if (curve.min_lr_rate) {
    problems.within("min_lr_rate", *curve.min_lr_rate, 0, 1);
  }
  if (curve.warmup_lr_rate) {
    problems.within("warmup_lr_rate", *curve.warmup_lr_rate, 0, 1);
  }
}

void check_stable_decay(const Schedule& schedule, Problems& problems) {
  const CurveParameters& curve = schedule.curve;
  problems.count("num_decay_steps", curve.num_decay_steps, 0);
  problems.count("num_stable_steps", curve.num_stable_steps, 0);
  problems.within("min_lr_ratio", curve.min_lr_ratio, 0, 1);
  if (schedule.total_updates == 0) {
    return;
  }
  const auto [stable, decay] = stable_and_decay(schedule);
  problems.require(stable >= 0 && decay >= 0,
                   curve.num_decay_steps ? "num_decay_steps" : "num_stable_steps",
                   fmt::format("{} updates after a warm-up of {} do not fit the {} updates in all",
                               curve.num_decay_steps ? decay : stable,
                               schedule.warmup_updates,
                               schedule.total_updates));
}

void check_transformers(const Schedule& schedule, Problems& problems) {
  const CurveParameters& curve = schedule.curve;
  problems.count("warmup_steps", schedule.warmup_updates, 0);
  if (takes_num_cycles(schedule.kind) && curve.num_cycles) {
    problems.within("num_cycles", *curve.num_cycles, 0, kMostCycles);
  }
  switch (schedule.kind) {
    case ScheduleKind::kPolynomial:
      return check_polynomial(schedule, problems);
    case ScheduleKind::kInverseSqrt:
      return problems.count("timescale", curve.timescale, 1);
    case ScheduleKind::kCosineWithMinLr:
    case ScheduleKind::kCosineWarmupWithMinLr:
      return check_minimum(schedule, problems);
    case ScheduleKind::kWarmupStableDecay:
      return check_stable_decay(schedule, problems);
    default:
      return;
  }
}

void check_warmup(const Schedule& schedule, Problems& problems) {
  problems.count("warmup_num_steps", schedule.warmup_updates, 1);
  problems.rate("warmup_min_lr", schedule.warmup.warmup_min_lr);
  problems.within("warmup_min_ratio", schedule.warmup.warmup_min_ratio, 0, 1);
  problems.within("cos_min_ratio", schedule.warmup.cos_min_ratio, 0, 1);
}

// decay_mom_rate raises the momentum without end; at 1 Adam divides by zero.
void check_momentum(const Schedule& schedule, Problems& problems) {
  const OneCycleParameters& cycle = schedule.one_cycle;
  const auto is_momentum = [](double value) { return value >= 0 && value < 1; };
  for (const auto& [name, value] : {std::pair{"cycle_min_mom", cycle.cycle_min_mom},
                                    std::pair{"cycle_max_mom", cycle.cycle_max_mom}}) {
    problems.require(
        is_momentum(value), name, fmt::format("must be 0 or more and below 1, not {}", value));
  }
  problems.within("decay_mom_rate", cycle.decay_mom_rate, -kLargestRate, kLargestRate);
  const std::int64_t last = schedule.total_updates - 1;
  const double reached = one_cycle_betas(cycle, last).first;
  problems.require(!is_momentum(cycle.cycle_max_mom) || last < 0 || is_momentum(reached),
                   "decay_mom_rate",
                   fmt::format("{} takes the momentum to {} at update {}: it must stay below 1",
                               cycle.decay_mom_rate,
                               reached,
                               last + 1));
}

void check_one_cycle(const Schedule& schedule, Problems& problems) {
  const OneCycleParameters& cycle = schedule.one_cycle;
  problems.rate("cycle_min_lr", cycle.cycle_min_lr);
  problems.rate("cycle_max_lr", cycle.cycle_max_lr);
  problems.rate("decay_lr_rate", cycle.decay_lr_rate);
  problems.count("cycle_first_step_size", cycle.cycle_first_step_size, 1);
  problems.count("cycle_second_step_size", cycle.cycle_second_step_size, 1);
  problems.count("cycle_first_stair_count", cycle.cycle_first_stair_count, 0);
  problems.count("cycle_second_stair_count", cycle.cycle_second_stair_count, 0);
  problems.count("decay_step_size", cycle.decay_step_size, 0);
  if (cycle.cycle_momentum && cycle.cycle_first_step_size > 0 &&
      cycle.cycle_second_step_size.value_or(1) > 0) {
    check_momentum(schedule, problems);
  }
}

void check_range_test(const RangeTestParameters& test, Problems& problems) {
  problems.rate("lr_range_test_min_lr", test.lr_range_test_min_lr);
  problems.count("lr_range_test_step_size", test.lr_range_test_step_size, 1);
  problems.rate("lr_range_test_step_rate", test.lr_range_test_step_rate);
}

void check_kind(const Schedule& schedule, Problems& problems) {
  switch (schedule.kind) {
    case ScheduleKind::kWarmupLr:
    case ScheduleKind::kWarmupDecayLr:
    case ScheduleKind::kWarmupCosineLr:
      return check_warmup(schedule, problems);
    case ScheduleKind::kOneCycle:
      return check_one_cycle(schedule, problems);
    case ScheduleKind::kLrRangeTest:
      return check_range_test(schedule.range_test, problems);
    default:
      return check_transformers(schedule, problems);
  }
}

// WarmupCosineLR multiplies the optimizer's own rate.
const char* peak_name(ScheduleKind kind) {
  return is_deepspeed(kind) && kind != ScheduleKind::kWarmupCosineLr ? "warmup_max_lr"
                                                                     : "learning_rate";
}

}  // namespace

std::vector<ScheduleProblem> problems_of(const Schedule& schedule) {
  Problems problems;
  const bool deepspeed = is_deepspeed(schedule.kind);
  if (uses_peak(schedule.kind)) {
    problems.rate(peak_name(schedule.kind), schedule.peak);
  }
  problems.count(deepspeed ? "total_num_steps" : "max_steps", schedule.total_updates, 0);
  check_kind(schedule, problems);
  return problems.take();
}

}  // namespace zeroth::arithmetic
