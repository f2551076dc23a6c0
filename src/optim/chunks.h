#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "optim/simd/norm.h"
#include "shard/flat_layout.h"

// Sums in an order that depends on the length alone, never on the number of threads: by chunks, and
// these in their order.
namespace zeroth::optim {

inline constexpr auto kChunk = static_cast<std::int64_t>(simd::kChunk);

// function(chunk) for each chunk of the range, in order.
template <typename Result, typename Function>
[[nodiscard]] std::vector<Result> map_chunks(shard::Range range, const Function& function) {
  const std::int64_t num_chunks = (range.size() + kChunk - 1) / kChunk;
  std::vector<Result> results(static_cast<std::size_t>(num_chunks));
#pragma omp parallel for schedule(static) if (num_chunks >= 8)
  for (std::int64_t chunk = 0; chunk < num_chunks; ++chunk) {
    const std::int64_t begin = range.begin + chunk * kChunk;
    results[static_cast<std::size_t>(chunk)] =
        function(shard::Range{begin, std::min(begin + kChunk, range.end)});
  }
  return results;
}

}  // namespace zeroth::optim
