#pragma once

#include <filesystem>
#include <string>

#include "checkpoint/manifest.h"
#include "config/run_config.h"
#include "train/checkpoint_save.h"
#include "train/progress.h"

namespace zeroth::train {

// A checkpoint that every rank has looked at.
struct OpenCheckpoint {
  std::filesystem::path folder;
  checkpoint::Manifest manifest;
  Progress progress;
};

// Rank 0's choice at every rank; kCheckpoint names a rank that cannot read it or finds another one
// there (case K16). Collective.
[[nodiscard]] OpenCheckpoint open_checkpoint(const std::filesystem::path& folder,
                                             comm::Communicator& comm);

// The same for one whose weights alone are wanted.
[[nodiscard]] OpenCheckpoint open_weights(const std::filesystem::path& folder,
                                          comm::Communicator& comm);

// kCheckpoint where the run would train another model or other rows, unless --allow says so.
void require_same_inputs(const OpenCheckpoint& checkpoint,
                         const Fingerprints& present,
                         const config::RunConfig& config);

// Weights, moments and counters into an engine of any number of ranks, stage and placement.
// kCheckpoint where a file is damaged or the trainable parameters are others. Collective.
void load_checkpoint(const OpenCheckpoint& checkpoint, engine::Engine& engine);

// The weights alone.
void load_weights(const OpenCheckpoint& checkpoint, engine::Engine& engine);

}  // namespace zeroth::train
