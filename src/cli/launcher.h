#pragma once

#include <filesystem>

#include "config/run_config.h"

namespace zeroth::cli {

// The engine's program: beside this one, or in ../libexec/zeroth once installed. kInternal if it is
// in neither place.
[[nodiscard]] std::filesystem::path find_worker();

// Starts one worker for each rank on this host (a single one where a launcher has made this process
// a rank) and blocks until all have ended; returns the exit code to end with, the first failing
// rank's. SIGINT, SIGTERM and SIGUSR1 are handed on to them, and they are killed if this process
// dies.
[[nodiscard]] int run_workers(config::RunConfig config);

}  // namespace zeroth::cli
