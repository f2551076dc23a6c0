#include "train/plan.h"

#include "arithmetic/updates.h"

namespace zeroth::train {
namespace {

arithmetic::ScheduleKind schedule_kind(config::ScheduleKind kind) {
  switch (kind) {
    case config::ScheduleKind::kLinear:
      return arithmetic::ScheduleKind::kLinear;
    case config::ScheduleKind::kCosine:
      return arithmetic::ScheduleKind::kCosine;
    case config::ScheduleKind::kConstant:
      return arithmetic::ScheduleKind::kConstant;
    case config::ScheduleKind::kConstantWithWarmup:
      break;
  }
  return arithmetic::ScheduleKind::kConstantWithWarmup;
}

}  // namespace

TrainPlan make_plan(const config::RunConfig& config, std::int64_t rows) {
  const config::ScheduleSettings& settings = config.schedule;
  const std::int64_t global_rows = config.batch.global_rows();
  const arithmetic::RunLength length =
      arithmetic::run_length({.rows = rows,
                              .global_rows = global_rows,
                              .num_train_epochs = settings.num_train_epochs,
                              .max_steps = settings.max_steps});
  return {.rows = rows,
          .global_rows = global_rows,
          .updates_per_epoch = length.updates_per_epoch,
          .updates_by_epochs = length.updates_by_epochs,
          .total_updates = length.total_updates,
          .schedule = {.kind = schedule_kind(settings.kind),
                       .peak = config.optimizer.learning_rate,
                       .warmup_updates = arithmetic::warmup_updates(
                           settings.warmup_steps, settings.warmup_ratio, length.total_updates),
                       .total_updates = length.total_updates}};
}

}  // namespace zeroth::train
