#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace zeroth::shard {

// Which of the units keep in memory what the others let rest on file: in their order, as many as
// fit into `elements` together. `numels`: elements of each unit.
[[nodiscard]] std::vector<bool> kept_in_memory(std::span<const std::int64_t> numels,
                                               std::int64_t elements);

// The elements that stay when a share of all is offloaded.
[[nodiscard]] std::int64_t elements_kept(std::span<const std::int64_t> numels,
                                         double offloaded_share);

}  // namespace zeroth::shard
