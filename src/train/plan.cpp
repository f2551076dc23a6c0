#include "train/plan.h"

#include <algorithm>
#include <cmath>

namespace zeroth::train {
namespace {

optim::ScheduleKind schedule_kind(config::ScheduleKind kind) {
  switch (kind) {
    case config::ScheduleKind::kLinear:
      return optim::ScheduleKind::kLinear;
    case config::ScheduleKind::kCosine:
      return optim::ScheduleKind::kCosine;
    case config::ScheduleKind::kConstant:
      return optim::ScheduleKind::kConstant;
    case config::ScheduleKind::kConstantWithWarmup:
      break;
  }
  return optim::ScheduleKind::kConstantWithWarmup;
}

std::int64_t rounded_up(double value) {
  return static_cast<std::int64_t>(std::ceil(value - 1e-9));
}

}  // namespace

TrainPlan make_plan(const config::RunConfig& config, std::int64_t rows) {
  TrainPlan plan{.rows = rows, .global_rows = config.batch.global_rows()};
  plan.updates_per_epoch = (rows + plan.global_rows - 1) / plan.global_rows;
  const config::ScheduleSettings& schedule = config.schedule;
  const double by_epochs = schedule.num_train_epochs * static_cast<double>(plan.updates_per_epoch);
  plan.total_updates = schedule.max_steps > 0 ? schedule.max_steps
                                              : std::max<std::int64_t>(1, rounded_up(by_epochs));
  const double warmup = schedule.warmup_ratio * static_cast<double>(plan.total_updates);
  plan.schedule = {
      .kind = schedule_kind(schedule.kind),
      .peak = config.optimizer.learning_rate,
      .warmup_updates = schedule.warmup_steps > 0 ? schedule.warmup_steps : rounded_up(warmup),
      .total_updates = plan.total_updates};
  return plan;
}

}  // namespace zeroth::train
