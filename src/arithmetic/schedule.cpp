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

std::int64_t Schedule::warmup_end() const noexcept {
  if (kind == ScheduleKind::kOneCycle) {
    return one_cycle.cycle_first_step_size;
  }
  if (!uses_warmup(kind)) {
    return 0;
  }
  return is_deepspeed(kind) ? deepspeed_warmup(*this) + 1 : warmup_updates;
}

}  // namespace zeroth::arithmetic
