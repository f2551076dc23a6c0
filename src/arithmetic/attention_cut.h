#pragma once

#include <algorithm>
#include <cstdint>

namespace zeroth::arithmetic {

// Rows of one product: enough to pay for the packing of its keys, few enough that a block sees
// little above the diagonal and that its scores stay in a core's cache.
inline constexpr std::int64_t kRowsPerBlock = 192;
inline constexpr std::int64_t kKeysPerChunk = 512;
// Blocks begin and end at multiples of this, so that few shapes of products occur.
inline constexpr std::int64_t kBlockGrain = 16;
inline constexpr std::int64_t kScoreRowEnd = 16;  // floats behind a row of scores

// How attention is cut into blocks of queries. `group` query heads read one key head; a row of the
// batch and a key head are a pair.
struct AttentionCut {
  std::int64_t block;       // queries of a block
  std::int64_t max_rows;    // of a block: its queries' heads
  std::int64_t row_stride;  // floats from one row of scores to the next
};

[[nodiscard]] constexpr AttentionCut cut_attention(std::int64_t group,
                                                   std::int64_t queries,
                                                   std::int64_t keys) noexcept {
  const std::int64_t block =
      std::max(kRowsPerBlock / group / kBlockGrain * kBlockGrain, kBlockGrain);
  const std::int64_t grains = (keys + kBlockGrain - 1) / kBlockGrain;
  return {.block = block,
          .max_rows = std::min(block, queries) * group,
          .row_stride = std::min(grains * kBlockGrain, kKeysPerChunk) + kScoreRowEnd};
}

// Bytes that one thread of a backward works with: scores and their gradients, queries, gradients
// and sums of a block, and the sums of the keys' and values' gradients of a pair.
[[nodiscard]] constexpr std::int64_t attention_scratch(const AttentionCut& cut,
                                                       std::int64_t keys,
                                                       std::int64_t head_dim) noexcept {
  constexpr std::int64_t kFloat = 4;
  return kFloat * (2 * cut.max_rows * cut.row_stride + 3 * cut.max_rows * head_dim +
                   2 * keys * head_dim);
}

}  // namespace zeroth::arithmetic
