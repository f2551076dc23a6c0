#pragma once

#include <cstdint>

#include "arithmetic/schedule.h"

// The two families behind Schedule::at.
namespace zeroth::arithmetic {

[[nodiscard]] double transformers_rate(const Schedule& schedule, std::int64_t update) noexcept;
[[nodiscard]] double deepspeed_rate(const Schedule& schedule, std::int64_t update) noexcept;
[[nodiscard]] Betas one_cycle_betas(const OneCycleParameters& cycle, std::int64_t update) noexcept;

// DeepSpeed lets no warm-up be shorter than 2: ln(1) would divide by zero.
[[nodiscard]] std::int64_t deepspeed_warmup(const Schedule& schedule) noexcept;

// How many updates warmup_stable_decay's rate is flat, and how many it falls.
struct StableAndDecay {
  std::int64_t stable = 0;
  std::int64_t decay = 0;
};

[[nodiscard]] StableAndDecay stable_and_decay(const Schedule& schedule) noexcept;

}  // namespace zeroth::arithmetic
