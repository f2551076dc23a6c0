#pragma once

// Settings that say where state rests, by name: rules and plans speak of them as well.
namespace zeroth::config {

inline constexpr auto kOptimizerDevice = "zero_optimization.offload_optimizer.device";
inline constexpr auto kOptimizerPath = "zero_optimization.offload_optimizer.nvme_path";
inline constexpr auto kParamDevice = "zero_optimization.offload_param.device";
inline constexpr auto kParamPath = "zero_optimization.offload_param.nvme_path";

}  // namespace zeroth::config
