#include <algorithm>
#include <array>

#include "arithmetic/schedule.h"

namespace zeroth::arithmetic {
namespace {

template <std::size_t count>
using Names = std::array<std::string_view, count>;

constexpr Names<1> kCycleNames{"num_cycles"};
constexpr Names<2> kPolynomialNames{"lr_end", "power"};
constexpr Names<1> kTimescaleNames{"timescale"};
constexpr Names<3> kMinimumNames{"num_cycles", "min_lr", "min_lr_rate"};
constexpr Names<4> kWarmupMinimumNames{"num_cycles", "min_lr", "min_lr_rate", "warmup_lr_rate"};
constexpr Names<6> kStableDecayNames{"num_decay_steps",
                                     "num_stable_steps",
                                     "warmup_type",
                                     "decay_type",
                                     "min_lr_ratio",
                                     "num_cycles"};
constexpr Names<4> kWarmupNames{
    "warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type"};
constexpr Names<5> kWarmupDecayNames{
    "total_num_steps", "warmup_min_lr", "warmup_max_lr", "warmup_num_steps", "warmup_type"};
constexpr Names<5> kWarmupCosineNames{
    "total_num_steps", "warmup_min_ratio", "warmup_num_steps", "cos_min_ratio", "warmup_type"};
constexpr Names<12> kOneCycleNames{"cycle_min_lr",
                                   "cycle_max_lr",
                                   "decay_lr_rate",
                                   "cycle_first_step_size",
                                   "cycle_second_step_size",
                                   "cycle_first_stair_count",
                                   "cycle_second_stair_count",
                                   "decay_step_size",
                                   "cycle_momentum",
                                   "cycle_min_mom",
                                   "cycle_max_mom",
                                   "decay_mom_rate"};
constexpr Names<4> kRangeTestNames{"lr_range_test_min_lr",
                                   "lr_range_test_step_size",
                                   "lr_range_test_step_rate",
                                   "lr_range_test_staircase"};

struct KindFacts {
  ScheduleKind kind;
  std::string_view name;
  bool peak, warmup, total;  // what it uses of a Schedule
  std::span<const std::string_view> parameters;
};

using enum ScheduleKind;
// In the order of ScheduleKind: facts_of reads by index.
constexpr std::array kFacts{
    KindFacts{kLinear, "linear", true, true, true, {}},
    KindFacts{kCosine, "cosine", true, true, true, kCycleNames},
    KindFacts{kCosineWithRestarts, "cosine_with_restarts", true, true, true, kCycleNames},
    KindFacts{kPolynomial, "polynomial", true, true, true, kPolynomialNames},
    KindFacts{kConstant, "constant", true, false, false, {}},
    KindFacts{kConstantWithWarmup, "constant_with_warmup", true, true, false, {}},
    KindFacts{kInverseSqrt, "inverse_sqrt", true, true, false, kTimescaleNames},
    KindFacts{kCosineWithMinLr, "cosine_with_min_lr", true, true, true, kMinimumNames},
    KindFacts{
        kCosineWarmupWithMinLr, "cosine_warmup_with_min_lr", true, true, true, kWarmupMinimumNames},
    KindFacts{kWarmupStableDecay, "warmup_stable_decay", true, true, true, kStableDecayNames},
    KindFacts{kWarmupLr, "WarmupLR", true, true, false, kWarmupNames},
    KindFacts{kWarmupDecayLr, "WarmupDecayLR", true, true, true, kWarmupDecayNames},
    KindFacts{kWarmupCosineLr, "WarmupCosineLR", true, true, true, kWarmupCosineNames},
    KindFacts{kOneCycle, "OneCycle", false, false, false, kOneCycleNames},
    KindFacts{kLrRangeTest, "LRRangeTest", false, false, false, kRangeTestNames}};

constexpr std::array kSlopes{Slope::kLinear, Slope::kCosine, Slope::kOneMinusSqrt};
constexpr std::array kWarmupTypes{WarmupType::kLog, WarmupType::kLinear};

constexpr auto kKinds = [] {
  std::array<ScheduleKind, kFacts.size()> kinds{};
  std::transform(kFacts.begin(), kFacts.end(), kinds.begin(), [](const KindFacts& facts) {
    return facts.kind;
  });
  return kinds;
}();

constexpr bool facts_follow_the_enumeration() {
  for (std::size_t i = 0; i < kFacts.size(); ++i) {
    if (static_cast<std::size_t>(kFacts[i].kind) != i) {
      return false;
    }
  }
  return true;
}

static_assert(facts_follow_the_enumeration());

const KindFacts& facts_of(ScheduleKind kind) {
  return kFacts[static_cast<std::size_t>(kind)];
}

template <typename Values>
auto named(const Values& values, std::string_view name) {
  std::optional<typename Values::value_type> found;
  for (const auto value : values) {
    if (name_of(value) == name) {
      found = value;
    }
  }
  return found;
}

}  // namespace

std::string_view name_of(ScheduleKind kind) noexcept {
  return facts_of(kind).name;
}

std::optional<ScheduleKind> schedule_named(std::string_view name) noexcept {
  return named(kKinds, name);
}

std::span<const ScheduleKind> all_schedules() noexcept {
  return kKinds;
}

bool is_deepspeed(ScheduleKind kind) noexcept {
  return kind >= kWarmupLr;
}

bool uses_peak(ScheduleKind kind) noexcept {
  return facts_of(kind).peak;
}

bool uses_warmup(ScheduleKind kind) noexcept {
  return facts_of(kind).warmup;
}

bool uses_total(ScheduleKind kind) noexcept {
  return facts_of(kind).total;
}

std::span<const std::string_view> parameters_of(ScheduleKind kind) noexcept {
  return facts_of(kind).parameters;
}

std::string_view name_of(Slope slope) noexcept {
  switch (slope) {
    case Slope::kLinear:
      break;
    case Slope::kCosine:
      return "cosine";
    case Slope::kOneMinusSqrt:
      return "1-sqrt";
  }
  return "linear";
}

std::optional<Slope> slope_named(std::string_view name) noexcept {
  return named(kSlopes, name);
}

std::string_view name_of(WarmupType type) noexcept {
  return type == WarmupType::kLog ? "log" : "linear";
}

std::optional<WarmupType> warmup_type_named(std::string_view name) noexcept {
  return named(kWarmupTypes, name);
}

}  // namespace zeroth::arithmetic
