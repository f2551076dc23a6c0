#include "arithmetic/schedule.h"

#include "arithmetic/curves.h"

namespace zeroth::arithmetic {

double Schedule::at(std::int64_t update) const noexcept {
  return is_deepspeed(kind) ? deepspeed_rate(*this, update) : transformers_rate(*this, update);
}

std::optional<Betas> Schedule::betas_at(std::int64_t update) const noexcept {
  if (kind != ScheduleKind::kOneCycle || !one_cycle.cycle_momentum) {
    return std::nullopt;
  }
  return one_cycle_betas(one_cycle, update);
}

}  // namespace zeroth::arithmetic
