#include "train/plan.h"

#include "arithmetic/updates.h"
#include "config/schedule_rules.h"

namespace zeroth::train {

TrainPlan make_plan(const config::RunConfig& config, std::int64_t rows) {
  const config::ScheduleSettings& settings = config.schedule;
  const std::int64_t global_rows = config.global_rows();
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
          .schedule = config::schedule_of(config, length.total_updates)};
}

}  // namespace zeroth::train
