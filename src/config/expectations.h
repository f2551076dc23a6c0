#pragma once

#include "config/problems.h"
#include "config/run_config.h"
#include "config/schema.h"

namespace zeroth::config {

// --strict, --expect KEY=VALUE and --min_effective_batch: what the user holds the run to. Without
// --min_effective_batch a small batch is a notice.
void check_expectations(const Values& values, RunConfig& config, Problems& problems);

}  // namespace zeroth::config
