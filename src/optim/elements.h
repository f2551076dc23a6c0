#pragma once

#include <cmath>
#include <cstdint>

#include "optim/optimizer.h"

// What the optimizers of this folder share. Elements are moved in fp32, by constants worked out in
// fp64.
namespace zeroth::optim {

// Calls function(i) for each element, in vectors and, where it is worth it, on several threads.
// `function` is copied, so that its constants stay in registers.
template <typename Function>
void for_each_element(shard::Range range, Function function) {
  constexpr std::int64_t kWorthThreads = 1 << 15;
  const bool large = range.size() >= kWorthThreads;
#pragma omp parallel for simd schedule(static) firstprivate(function) if (parallel : large)
  for (std::int64_t i = range.begin; i < range.end; ++i) {
    function(i);
  }
}

[[nodiscard]] inline double rate_of(const Segment& segment, const UpdateStep& step) noexcept {
  return step.learning_rate * segment.rate_factor;
}

[[nodiscard]] inline double decay_of(const Segment& segment, double of_optimizer) noexcept {
  return segment.decays ? segment.weight_decay.value_or(of_optimizer) : 0.0;
}

// 1 - beta^t: how much of a moving average that started at zero is there.
[[nodiscard]] inline double share_averaged(double beta, const UpdateStep& step) noexcept {
  return 1.0 - std::pow(beta, static_cast<double>(step.update));
}

}  // namespace zeroth::optim
