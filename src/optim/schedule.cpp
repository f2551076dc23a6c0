#include "optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace zeroth::optim {

double Schedule::at(std::int64_t update) const noexcept {
  const auto now = static_cast<double>(update);
  const auto warmup = static_cast<double>(warmup_updates);
  if (kind == ScheduleKind::kConstant) {
    return peak;
  }
  if (update < warmup_updates) {
    return peak * now / std::max(1.0, warmup);
  }
  const double after = std::max(1.0, static_cast<double>(total_updates - warmup_updates));
  const double progress = (now - warmup) / after;
  switch (kind) {
    case ScheduleKind::kLinear:
      return peak * std::max(0.0, 1.0 - progress);
    case ScheduleKind::kCosine:
      return peak * std::max(0.0, 0.5 * (1.0 + std::cos(std::numbers::pi * progress)));
    case ScheduleKind::kConstant:
    case ScheduleKind::kConstantWithWarmup:
      break;
  }
  return peak;
}

}  // namespace zeroth::optim
