#pragma once

#include <memory>

#include "arithmetic/schedule.h"
#include "config/run_config.h"
#include "engine/options.h"
#include "optim/optimizer.h"

// From settings to what the engine takes.
namespace zeroth::library {

[[nodiscard]] engine::EngineOptions engine_options(const config::RunConfig& config,
                                                   const arithmetic::Schedule& schedule);
[[nodiscard]] std::unique_ptr<optim::Optimizer> make_optimizer(
    const config::OptimizerSettings& settings);

}  // namespace zeroth::library
