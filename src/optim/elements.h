#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "optim/optimizer.h"
#include "optim/simd/moves.h"

// What the optimizers of this folder share. Elements are moved in fp32, by constants worked out in
// fp64.
namespace zeroth::optim {

// The range's elements from its begin on, as vector code takes them.
[[nodiscard]] inline simd::Elements elements_of(const ShardView& shard, shard::Range range) {
  constexpr std::int64_t kOutgrowsCaches = 1 << 22;
  const auto begin = static_cast<std::size_t>(range.begin);
  const auto at = [&](std::span<float> values) {
    return values.empty() ? nullptr : values.data() + begin;
  };
  return {.count = static_cast<std::size_t>(range.size()),
          .master = at(shard.master),
          .gradients = shard.gradients.data() + begin,
          .first = at(shard.moments[0]),
          .second = at(shard.moments[1]),
          .rounded = shard.rounded.bits.empty() ? nullptr : shard.rounded.bits.data() + begin,
          .rounded_type = shard.rounded.type,
          .streams = static_cast<std::int64_t>(shard.master.size()) >= kOutgrowsCaches};
}

// Calls move(simd::Elements) for pieces of the range, where it is worth it on several threads.
template <typename Move>
void for_each_piece(const ShardView& shard, shard::Range range, const Move& move) {
  constexpr std::int64_t kPiece = 1 << 14;
  const std::int64_t num_pieces = (range.size() + kPiece - 1) / kPiece;
#pragma omp parallel for schedule(static) if (num_pieces > 1)
  for (std::int64_t piece = 0; piece < num_pieces; ++piece) {
    const std::int64_t begin = range.begin + piece * kPiece;
    move(elements_of(shard, {begin, std::min(begin + kPiece, range.end)}));
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
