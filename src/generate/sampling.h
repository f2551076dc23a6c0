#pragma once

#include <cstdint>
#include <span>

#include "base/random.h"

namespace zeroth::generate {

struct SamplingOptions {
  bool do_sample = false;  // false: the most likely token
  double temperature = 1.0;
  std::int64_t top_k = 0;  // 0: no limit
  double top_p = 1.0;
  double repetition_penalty = 1.0;
};

// The next token from a row of logits, in Transformers' order: repetition penalty, temperature, top
// k, top p. The logits are changed. `seen` holds the ids of the row so far (prompt included).
[[nodiscard]] std::int64_t next_token(std::span<float> logits,
                                      std::span<const std::int64_t> seen,
                                      const SamplingOptions& options,
                                      RandomStream& random);

}  // namespace zeroth::generate
