#pragma once

#include <string>

#include "config/run_config.h"
#include "formats/model_config.h"
#include "memory/tally.h"
#include "train/trainer.h"

namespace zeroth::worker {

// What this rank held at the most, counted, beside the plan for the largest micro-batch that came,
// and beside what the kernel says of the process. A deviation of more than a tenth is marked.
[[nodiscard]] std::string memory_report(const config::RunConfig& config,
                                        const formats::ModelConfig& model,
                                        const memory::Tally& tally,
                                        const train::MicroBatchSize& largest);

}  // namespace zeroth::worker
