#pragma once

#include <cstdint>
#include <vector>

#include "comm/communicator.h"

// Which processors a rank computes on.
namespace zeroth::engine {

// The part of `processors` that belongs to sharer `index` of `count`: parts are disjoint, together
// all, and differ by one in size. Empty where there are fewer processors than sharers.
[[nodiscard]] std::vector<int> part_of(const std::vector<int>& processors,
                                       std::int64_t index,
                                       std::int64_t count);

// Deals the processors that this process may use to the ranks that may use the same ones, on this
// machine, and keeps this rank on its part; where a launcher has given each rank its own, or there
// are more ranks than processors, nothing is changed. Sets the number of threads: `threads` if it
// is above 0, else one for each processor of the smallest part. Before the first parallel work.
// Collective.
void share_processors(comm::Communicator& comm, std::int64_t threads);

}  // namespace zeroth::engine
