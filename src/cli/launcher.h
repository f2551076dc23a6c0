#pragma once

#include <filesystem>

#include "config/run_config.h"

namespace zeroth::cli {

// The engine's program: beside this one, or in ../libexec/zeroth once installed. kInternal if it is
// in neither place.
[[nodiscard]] std::filesystem::path find_worker();

// Starts the worker with `config` and blocks until it has ended; returns the exit code to end with.
// SIGINT, SIGTERM and SIGUSR1 are handed on to it, and it is killed if this process dies.
[[nodiscard]] int run_worker(const config::RunConfig& config);

}  // namespace zeroth::cli
