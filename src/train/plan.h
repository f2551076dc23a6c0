#pragma once

#include <cstdint>

#include "config/run_config.h"
#include "optim/schedule.h"

namespace zeroth::train {

// The arithmetic of a run: how often it updates and at which rates.
struct TrainPlan {
  std::int64_t rows = 0;
  std::int64_t global_rows = 0;
  std::int64_t updates_per_epoch = 0;  // the last one of an epoch may be partial
  std::int64_t total_updates = 0;      // max_steps, or epochs times updates_per_epoch rounded up
  optim::Schedule schedule;
};

[[nodiscard]] TrainPlan make_plan(const config::RunConfig& config, std::int64_t rows);

}  // namespace zeroth::train
