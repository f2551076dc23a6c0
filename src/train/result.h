#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "config/run_config.h"
#include "engine/engine.h"
#include "formats/adapter.h"
#include "models/model.h"
#include "train/companions.h"

namespace zeroth::train {

// What a run trains and leaves behind. Borrowed.
struct Trained {
  const config::RunConfig& config;
  const models::Model& model;
  const std::optional<formats::AdapterConfig>& adapter;
  engine::Engine& engine;
  const std::vector<Companion>& companions;
  bool saves = true;  // false: some rank does not see output_dir, and there can be no checkpoints
};

// The type of a result's numbers: of adapters fp32, of a model the type it computes in. DeepSpeed
// leaves a stage 3 run without gather_16bit to a converter, which makes fp32 weights of it.
[[nodiscard]] at::ScalarType result_dtype(const Trained& trained);

[[nodiscard]] std::int64_t result_bytes(const Trained& trained);

// The adapter or the model, and the base model's tokenizer files, so that other tools open the
// folder. Returns the files, on rank 0. Collective.
std::vector<std::filesystem::path> save_result(const Trained& trained,
                                               const std::filesystem::path& folder);

}  // namespace zeroth::train
