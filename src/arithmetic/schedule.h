#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Learning rates by update. A Schedule is a value; at(n) is the rate of the update that follows n
// finished ones, so the first update of a run uses at(0). Skipped attempts do not count.
//
// [Note: schedule index] Transformers' formulas take n itself. DeepSpeed's take n - 1: at -1 its
// constructors set the minimum (WarmupCosineLR 0), and a warm-up is at its minimum at 0 too, so
// updates 1 and 2 of the Warmup kinds share a rate.
namespace zeroth::arithmetic {

enum class ScheduleKind {
  // Transformers' lr_scheduler_type. reduce_lr_on_plateau depends on evaluations, not on updates.
  kLinear,
  kCosine,
  kCosineWithRestarts,
  kPolynomial,
  kConstant,
  kConstantWithWarmup,
  kInverseSqrt,
  kCosineWithMinLr,
  kCosineWarmupWithMinLr,
  kWarmupStableDecay,
  // DeepSpeed's scheduler.type.
  kWarmupLr,
  kWarmupDecayLr,
  kWarmupCosineLr,
  kOneCycle,
  kLrRangeTest,
};

// Shapes of warmup_stable_decay's two slopes: "linear", "cosine", "1-sqrt".
enum class Slope { kLinear, kCosine, kOneMinusSqrt };
// DeepSpeed's warmup_type: "log", "linear".
enum class WarmupType { kLog, kLinear };

// Transformers' lr_scheduler_kwargs, by their names.
struct CurveParameters {
  std::optional<double> num_cycles;       // cosine kinds and warmup_stable_decay 0.5, restarts 1
  double lr_end = 1e-7;                   // polynomial
  double power = 1;                       // polynomial
  std::optional<std::int64_t> timescale;  // inverse_sqrt: the warm-up, or 10000 without one
  std::optional<double> min_lr;           // cosine_with_min_lr kinds: this ...
  std::optional<double> min_lr_rate;      // ... or this times the peak
  std::optional<double> warmup_lr_rate;   // cosine_warmup_with_min_lr: first rate / peak
  // warmup_stable_decay: one given is the rest of the other; with neither, a third of the updates
  // after the warm-up are stable (LLaMA-Factory's rule).
  std::optional<std::int64_t> num_decay_steps;
  std::optional<std::int64_t> num_stable_steps;
  Slope warmup_type = Slope::kLinear;
  Slope decay_type = Slope::kCosine;
  double min_lr_ratio = 0;

  friend bool operator==(const CurveParameters&, const CurveParameters&) = default;
};

// Parameters of DeepSpeed's WarmupLR, WarmupDecayLR and WarmupCosineLR. warmup_max_lr is the
// schedule's peak (not given: the optimizer's lr, for WarmupDecayLR 0.001; WarmupCosineLR always
// takes the optimizer's), warmup_num_steps (1000) its warmup_updates, total_num_steps its
// total_updates.
struct WarmupParameters {
  WarmupType warmup_type = WarmupType::kLog;
  double warmup_min_lr = 0;
  double warmup_min_ratio = 0;    // WarmupCosineLR
  double cos_min_ratio = 0.0001;  // WarmupCosineLR

  friend bool operator==(const WarmupParameters&, const WarmupParameters&) = default;
};

// DeepSpeed's OneCycle.
struct OneCycleParameters {
  double cycle_min_lr = 0;
  double cycle_max_lr = 0;
  double decay_lr_rate = 0;
  std::int64_t cycle_first_step_size = 2000;
  std::optional<std::int64_t> cycle_second_step_size;    // the first's
  std::int64_t cycle_first_stair_count = 0;              // 0: no stairs
  std::optional<std::int64_t> cycle_second_stair_count;  // the first's
  std::int64_t decay_step_size = 0;                      // 0: no decay after the cycle
  bool cycle_momentum = true;
  double cycle_min_mom = 0.8;
  double cycle_max_mom = 0.9;
  double decay_mom_rate = 0;

  friend bool operator==(const OneCycleParameters&, const OneCycleParameters&) = default;
};

// DeepSpeed's LRRangeTest.
struct RangeTestParameters {
  double lr_range_test_min_lr = 1e-3;
  std::int64_t lr_range_test_step_size = 2000;
  double lr_range_test_step_rate = 1;
  bool lr_range_test_staircase = false;

  friend bool operator==(const RangeTestParameters&, const RangeTestParameters&) = default;
};

struct Betas {
  double first = 0;
  double second = 0;

  friend bool operator==(const Betas&, const Betas&) = default;
};

struct Schedule {
  ScheduleKind kind = ScheduleKind::kLinear;
  double peak = 0;  // learning_rate
  std::int64_t warmup_updates = 0;
  std::int64_t total_updates = 0;  // 0: not known yet
  CurveParameters curve;
  WarmupParameters warmup;
  OneCycleParameters one_cycle;
  RangeTestParameters range_test;

  // Finite for every schedule without problems.
  [[nodiscard]] double at(std::int64_t update) const noexcept;

  // OneCycle with cycle_momentum replaces Adam's betas (the second by 0.99, as DeepSpeed does);
  // every other schedule leaves them alone: none.
  [[nodiscard]] std::optional<Betas> betas_at(std::int64_t update) const noexcept;

  // Finished updates when the warm-up (OneCycle: the rise) is over and its end is reached: at() of
  // it is the rate to show for it.
  [[nodiscard]] std::int64_t warmup_end() const noexcept;

  friend bool operator==(const Schedule&, const Schedule&) = default;
};

// Why a schedule cannot be followed, by the name that a user writes: "warmup_num_steps", "must be a
// positive integer, not 0". Empty: nothing is wrong. Rules that need total_updates are left out
// while it is 0.
struct ScheduleProblem {
  std::string parameter;
  std::string message;

  friend bool operator==(const ScheduleProblem&, const ScheduleProblem&) = default;
};

[[nodiscard]] std::vector<ScheduleProblem> problems_of(const Schedule& schedule);

// "linear", "WarmupLR": as Transformers and DeepSpeed spell them.
[[nodiscard]] std::string_view name_of(ScheduleKind kind) noexcept;
[[nodiscard]] std::optional<ScheduleKind> schedule_named(std::string_view name) noexcept;
[[nodiscard]] std::span<const ScheduleKind> all_schedules() noexcept;  // in the order above

[[nodiscard]] bool is_deepspeed(ScheduleKind kind) noexcept;
[[nodiscard]] bool uses_peak(ScheduleKind kind) noexcept;    // the optimizer's learning rate
[[nodiscard]] bool uses_warmup(ScheduleKind kind) noexcept;  // warmup_updates
[[nodiscard]] bool uses_total(ScheduleKind kind) noexcept;   // total_updates

// Names of the further parameters that a kind takes: keys of lr_scheduler_kwargs, or of DeepSpeed's
// scheduler.params (there with warmup_max_lr, warmup_num_steps and total_num_steps).
[[nodiscard]] std::span<const std::string_view> parameters_of(ScheduleKind kind) noexcept;

[[nodiscard]] std::string_view name_of(Slope slope) noexcept;
[[nodiscard]] std::optional<Slope> slope_named(std::string_view name) noexcept;
[[nodiscard]] std::string_view name_of(WarmupType type) noexcept;
[[nodiscard]] std::optional<WarmupType> warmup_type_named(std::string_view name) noexcept;

}  // namespace zeroth::arithmetic
