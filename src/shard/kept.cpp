#include "shard/kept.h"

#include <cmath>
#include <numeric>

namespace zeroth::shard {

std::vector<bool> kept_in_memory(std::span<const std::int64_t> numels, std::int64_t elements) {
  std::vector<bool> kept;
  std::int64_t left = elements;
  for (const std::int64_t numel : numels) {
    kept.push_back(numel <= left);
    left -= kept.back() ? numel : left;  // the first that does not fit is where files begin
  }
  return kept;
}

std::int64_t elements_kept(std::span<const std::int64_t> numels, double offloaded_share) {
  const auto all = std::accumulate(numels.begin(), numels.end(), std::int64_t{0});
  return std::llround((1.0 - offloaded_share) * static_cast<double>(all));
}

}  // namespace zeroth::shard
