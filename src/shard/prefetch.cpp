#include "shard/prefetch.h"

#include <algorithm>

namespace zeroth::shard {
namespace {

// Units after `first` whose sum stays within the limit.
std::int64_t units_within(std::span<const std::int64_t> numels,
                          std::size_t first,
                          std::int64_t limit) {
  std::int64_t count = 0;
  std::int64_t sum = 0;
  for (std::size_t next = first + 1; next < numels.size(); ++next) {
    sum += numels[next];
    if (sum > limit) {
      break;
    }
    ++count;
  }
  return count;
}

}  // namespace

std::int64_t prefetch_depth(const PrefetchLimits& limits, std::span<const std::int64_t> numels) {
  if (limits.ahead == 0) {
    return 0;
  }
  std::int64_t depth = 1;
  for (std::size_t first = 0; first < numels.size(); ++first) {
    const std::int64_t room = std::max<std::int64_t>(0, limits.live - numels[first]);
    depth = std::max(depth, units_within(numels, first, std::min(limits.ahead.value_or(0), room)));
  }
  const auto half = static_cast<std::int64_t>(numels.size()) / 2;
  return std::min(depth, std::max<std::int64_t>(1, half));
}

}  // namespace zeroth::shard
