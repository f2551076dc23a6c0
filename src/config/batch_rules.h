#pragma once

#include <cstdint>
#include <string>

#include "config/placement.h"
#include "config/problems.h"
#include "config/run_config.h"
#include "config/schema.h"

namespace zeroth::config {

// How many ranks there are, by the launcher, an option or a file.
[[nodiscard]] GridInForce solve_grid(const Values& values,
                                     const Placement& place,
                                     Problems& problems);

// Fills in whichever of train_batch_size, per_device_train_batch_size and
// gradient_accumulation_steps is not given; what does not fit together is a problem that names all
// four factors, their sources and ways to mend it.
void solve_batch(Values& values, const GridInForce& grid, Problems& problems);

}  // namespace zeroth::config
