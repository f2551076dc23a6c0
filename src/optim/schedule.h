#pragma once

#include <cstdint>

namespace zeroth::optim {

enum class ScheduleKind { kLinear, kCosine, kConstant, kConstantWithWarmup };

// Learning rates as Transformers' schedulers give them, counted in updates from 0: a linear warm-up
// from 0 (the first update of a warm-up has rate 0), then the named curve down to 0 at
// total_updates.
struct Schedule {
  ScheduleKind kind = ScheduleKind::kLinear;
  double peak = 0;
  std::int64_t warmup_updates = 0;
  std::int64_t total_updates = 1;

  [[nodiscard]] double at(std::int64_t update) const noexcept;
};

}  // namespace zeroth::optim
