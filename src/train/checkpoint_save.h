#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "train/progress.h"
#include "train/result.h"

// A run's checkpoints: contents from the engine, the folder's life from checkpoint/folder.h.
namespace zeroth::train {

// Told apart from other models and other rows.
struct Fingerprints {
  std::string model;
  std::string data;
};

// The trainable parameters of the engine's units, as a checkpoint lists them.
[[nodiscard]] std::vector<checkpoint::UnitEntry> unit_entries(engine::Engine& engine);

// Writes OUT/checkpoint-N of the updates made so far, in place of one of that name, and makes it
// the latest. Each rank writes its part of the state; rank 0 the rest. Returns the folder. kDisk
// where there is no room or a write fails: earlier checkpoints are as they were. Collective.
std::filesystem::path save_checkpoint(const Trained& trained,
                                      const Progress& progress,
                                      const Fingerprints& fingerprints);

// How much room that takes, all ranks together.
[[nodiscard]] std::int64_t checkpoint_bytes(const Trained& trained);

}  // namespace zeroth::train
