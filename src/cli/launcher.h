#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

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

// The same with a program of the user's: words.front() is its file. Each of `ranks` processes is
// told which one it is by the variables that torchrun sets.
[[nodiscard]] int run_programs(const std::vector<std::string>& words, std::int64_t ranks);

}  // namespace zeroth::cli
