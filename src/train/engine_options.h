#pragma once

#include <memory>

#include "config/run_config.h"
#include "engine/options.h"
#include "optim/optimizer.h"

// What the settings in force mean to the engine.
namespace zeroth::train {

[[nodiscard]] at::ScalarType compute_dtype(const config::RunConfig& config);

[[nodiscard]] engine::EngineOptions engine_options(const config::RunConfig& config,
                                                   const arithmetic::Schedule& schedule);

[[nodiscard]] std::unique_ptr<optim::Optimizer> make_optimizer(
    const config::OptimizerSettings& settings);

}  // namespace zeroth::train
