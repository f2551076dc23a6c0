#pragma once

#include "cli/commands.h"
#include "config/run_config.h"

namespace zeroth::cli {

// train, eval and predict: resolve, check what is cheap to check, take the output folder, run the
// worker.
[[nodiscard]] int run_with_engine(config::Command command, Arguments arguments);

}  // namespace zeroth::cli
