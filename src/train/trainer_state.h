#pragma once

#include <filesystem>

#include "base/json.h"
#include "config/run_config.h"
#include "engine/options.h"
#include "train/progress.h"

namespace zeroth::train {

inline constexpr auto kTrainerStateFile = "trainer_state.json";

// Transformers' trainer_state.json (TrainerState in transformers/trainer_callback.py), for the
// tools that read it. Zeroth itself goes on from checkpoint.json.
[[nodiscard]] Json trainer_state(const config::RunConfig& config, const Progress& progress);
void write_trainer_state(const std::filesystem::path& folder,
                         const config::RunConfig& config,
                         const Progress& progress);

}  // namespace zeroth::train
