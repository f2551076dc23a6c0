#pragma once

#include <optional>

#include "comm/communicator.h"
#include "config/run_config.h"
#include "data/example.h"
#include "data/sampler.h"
#include "train/checkpoint_load.h"
#include "train/plan.h"
#include "worker/inputs.h"

namespace zeroth::worker {

// What a run goes on from; empty: it begins.
using Resumed = std::optional<train::OpenCheckpoint>;

[[nodiscard]] train::Fingerprints fingerprints_of(const config::RunConfig& config,
                                                  const Inputs& inputs,
                                                  const data::Dataset& train);

// Rank 0's choice, once it fits the model and the rows. Collective.
[[nodiscard]] Resumed checkpoint_to_resume(const config::RunConfig& config,
                                           comm::Communicator& comm,
                                           const train::Fingerprints& fingerprints);

[[nodiscard]] data::SamplerStart start_of(const Resumed& resumed);

// Into the engine, and a word of it to people. Collective.
void load_resumed(const train::OpenCheckpoint& checkpoint,
                  const train::TrainPlan& plan,
                  engine::Engine& engine);

}  // namespace zeroth::worker
