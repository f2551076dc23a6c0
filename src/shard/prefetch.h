#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace zeroth::shard {

// How far ahead of their use units are gathered.
struct PrefetchLimits {
  std::optional<std::int64_t> ahead;  // elements; not given: the next unit; 0: nothing
  std::int64_t live = 1'000'000'000;  // elements gathered at one time, the unit in use included
};

// How many units may be gathered ahead of the one in use: as many as fit in the limits wherever the
// walk is, one at least unless `ahead` is 0, and never more than half of all, so that no rank comes
// to hold the whole model. `numels`: elements of each unit, in order.
[[nodiscard]] std::int64_t prefetch_depth(const PrefetchLimits& limits,
                                          std::span<const std::int64_t> numels);

}  // namespace zeroth::shard
