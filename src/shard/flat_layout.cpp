#include "shard/flat_layout.h"

#include <algorithm>

#include "base/check.h"

namespace zeroth::shard {
namespace {

// Shard borders fall on multiples of this, so that every shard of a 64-byte aligned buffer is
// aligned too.
constexpr std::int64_t kShardMultiple = 16;

}  // namespace

Range intersect(Range a, Range b) noexcept {
  const std::int64_t begin = std::max(a.begin, b.begin);
  return {.begin = begin, .end = std::max(begin, std::min(a.end, b.end))};
}

FlatLayout::FlatLayout(std::span<const std::int64_t> numels, std::int64_t num_shards)
    : num_shards_(num_shards) {
  ZEROTH_CHECK(num_shards >= 1, "a layout needs at least one shard, got {}", num_shards);
  for (const std::int64_t numel : numels) {
    ZEROTH_CHECK(numel >= 0, "a parameter cannot have {} elements", numel);
    parameters_.push_back({.begin = numel_, .end = numel_ + numel});
    numel_ += numel;
  }
  const std::int64_t step = num_shards * kShardMultiple;
  shard_numel_ = (numel_ + step - 1) / step * kShardMultiple;
}

Range FlatLayout::shard(std::int64_t rank) const noexcept {
  return {.begin = rank * shard_numel_, .end = (rank + 1) * shard_numel_};
}

}  // namespace zeroth::shard
