#pragma once

#include <algorithm>
#include <cstdint>

namespace zeroth::arithmetic {

// A head that never holds all logits takes rows in chunks: their logits have this many bytes at the
// most, but there are at least kMinRowsAtOnce.
inline constexpr std::int64_t kLogitsAtOnce = std::int64_t{32} << 20;
inline constexpr std::int64_t kMinRowsAtOnce = 16;

[[nodiscard]] constexpr std::int64_t rows_at_once(std::int64_t vocabulary,
                                                  std::int64_t logit_bytes) noexcept {
  const std::int64_t row_bytes = std::max<std::int64_t>(1, vocabulary * logit_bytes);
  return std::max(kMinRowsAtOnce, kLogitsAtOnce / row_bytes);
}

// Elements of the head's gradients that are scaled and rounded at once.
inline constexpr std::int64_t kRoundedAtOnce = std::int64_t{1} << 16;

}  // namespace zeroth::arithmetic
