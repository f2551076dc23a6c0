#include "optim/norm.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "optim/simd/norm.h"

namespace zeroth::optim {

double sum_of_squares(std::span<const float> values) {
  constexpr std::size_t kPieceChunks = 8;
  constexpr std::size_t kPiece = kPieceChunks * simd::kChunk;
  const std::size_t num_pieces = (values.size() + kPiece - 1) / kPiece;
  std::vector<double> sums(num_pieces * kPieceChunks);  // 0 behind the last chunk
#pragma omp parallel for schedule(static) if (num_pieces > 1)
  for (std::size_t piece = 0; piece < num_pieces; ++piece) {
    const std::size_t begin = piece * kPiece;
    simd::sums_of_squares(values.data() + begin,
                          std::min(kPiece, values.size() - begin),
                          sums.data() + piece * kPieceChunks);
  }
  return std::accumulate(sums.begin(), sums.end(), 0.0);
}

double clip_factor(double norm, double max_norm) noexcept {
  constexpr double kNoDivisionByZero = 1e-6;
  return max_norm <= 0 ? 1.0 : std::min(1.0, max_norm / (norm + kNoDivisionByZero));
}

}  // namespace zeroth::optim
