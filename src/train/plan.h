#pragma once

#include <cstdint>

#include "arithmetic/schedule.h"
#include "config/run_config.h"
#include "data/sampler.h"

namespace zeroth::train {

// How often a run updates and at which rates.
struct TrainPlan {
  std::int64_t rows = 0;
  std::int64_t global_rows = 0;
  std::int64_t updates_per_epoch = 0;  // the last one of an epoch may be partial
  std::int64_t updates_by_epochs = 0;  // what num_train_epochs asks for
  std::int64_t total_updates = 0;      // max_steps where it is given, else updates_by_epochs
  data::SamplerStart start;            // the first that this process makes
  arithmetic::Schedule schedule;
};

// A run that goes on counts the updates that were made before. Where those had another global
// batch, the epochs that are left are cut into the new one.
[[nodiscard]] TrainPlan make_plan(const config::RunConfig& config,
                                  std::int64_t rows,
                                  const data::SamplerStart& start = {});

}  // namespace zeroth::train
