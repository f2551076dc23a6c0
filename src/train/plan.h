#pragma once

#include <cstdint>

#include "arithmetic/schedule.h"
#include "config/run_config.h"

namespace zeroth::train {

// How often a run updates and at which rates.
struct TrainPlan {
  std::int64_t rows = 0;
  std::int64_t global_rows = 0;
  std::int64_t updates_per_epoch = 0;  // the last one of an epoch may be partial
  std::int64_t updates_by_epochs = 0;  // what num_train_epochs asks for
  std::int64_t total_updates = 0;      // max_steps where it is given, else updates_by_epochs
  arithmetic::Schedule schedule;
};

[[nodiscard]] TrainPlan make_plan(const config::RunConfig& config, std::int64_t rows);

}  // namespace zeroth::train
