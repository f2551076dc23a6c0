#include "optim/norm.h"

#include <numeric>

#include "optim/chunks.h"

namespace zeroth::optim {

double sum_of_squares(std::span<const float> values) {
  const std::vector<double> sums =
      map_chunks<double>({0, static_cast<std::int64_t>(values.size())}, [&](shard::Range chunk) {
        return chunk_sum_of_squares(values.subspan(static_cast<std::size_t>(chunk.begin),
                                                   static_cast<std::size_t>(chunk.size())));
      });
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double clip_factor(double norm, double max_norm) noexcept {
  constexpr double kNoDivisionByZero = 1e-6;
  return max_norm <= 0 ? 1.0 : std::min(1.0, max_norm / (norm + kNoDivisionByZero));
}

}  // namespace zeroth::optim
