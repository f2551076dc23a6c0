#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "shard/flat_layout.h"

// Sums in an order that depends on the length alone, never on the number of threads: by chunks, and
// these in their order.
namespace zeroth::optim {

inline constexpr std::int64_t kChunk = 4096;

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

// In fixed lanes, so that it is made of vectors: one running sum would wait for each addition.
[[nodiscard]] inline double chunk_sum_of_squares(std::span<const float> values) noexcept {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  const std::size_t whole = values.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const double value = values[i + lane];
      lanes[lane] += value * value;
    }
  }
  for (std::size_t i = whole; i < values.size(); ++i) {
    const double value = values[i];
    lanes[i - whole] += value * value;
  }
  return std::accumulate(lanes.begin(), lanes.end(), 0.0);
}

}  // namespace zeroth::optim
