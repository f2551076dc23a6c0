#include "optim/norm.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace zeroth::optim {
namespace {

constexpr std::size_t kChunk = 4096;

double chunk_sum(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) {
    sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return sum;
}

}  // namespace

double sum_of_squares(std::span<const float> values) {
  const std::size_t num_chunks = (values.size() + kChunk - 1) / kChunk;
  std::vector<double> sums(num_chunks);
#pragma omp parallel for schedule(static)
  for (std::size_t chunk = 0; chunk < num_chunks; ++chunk) {
    const std::size_t begin = chunk * kChunk;
    sums[chunk] = chunk_sum(values.subspan(begin, std::min(kChunk, values.size() - begin)));
  }
  double total = 0;
  for (const double sum : sums) {
    total += sum;
  }
  return total;
}

double clip_factor(double norm, double max_norm) noexcept {
  constexpr double kNoDivisionByZero = 1e-6;
  return max_norm <= 0 ? 1.0 : std::min(1.0, max_norm / (norm + kNoDivisionByZero));
}

}  // namespace zeroth::optim
