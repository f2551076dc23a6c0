#include "train/plan.h"

#include <algorithm>

#include "arithmetic/updates.h"
#include "config/schedule_rules.h"

namespace zeroth::train {

TrainPlan make_plan(const config::RunConfig& config,
                    std::int64_t rows,
                    const data::SamplerStart& start) {
  const config::ScheduleSettings& settings = config.schedule;
  const std::int64_t global_rows = config.global_rows();
  const arithmetic::RunLength length =
      arithmetic::run_length({.rows = rows,
                              .global_rows = global_rows,
                              .num_train_epochs = settings.num_train_epochs,
                              .max_steps = settings.max_steps});
  const bool by_epochs = settings.max_steps <= 0;
  // Batches of this size that the rows before the start would have been.
  const std::int64_t left_in_epoch = (rows - start.at.row + global_rows - 1) / global_rows;
  const std::int64_t behind =
      (start.at.epoch + 1) * length.updates_per_epoch - std::max<std::int64_t>(0, left_in_epoch);
  const std::int64_t total =
      by_epochs ? length.total_updates + (start.update - behind) : length.total_updates;
  return {.rows = rows,
          .global_rows = global_rows,
          .updates_per_epoch = length.updates_per_epoch,
          .updates_by_epochs = length.updates_by_epochs,
          .total_updates = total,
          .start = start,
          .schedule = config::schedule_of(config, total)};
}

}  // namespace zeroth::train
