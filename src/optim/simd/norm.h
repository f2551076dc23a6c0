#pragma once

#include <cstddef>

namespace zeroth::optim::simd {

inline constexpr std::size_t kChunk = 4096;

// The sum of squares of each chunk of kChunk values (the last may be shorter) in fp64: in eight
// interleaved sums, which are then added one after the other. One order on every processor.
void sums_of_squares(const float* values, std::size_t count, double* one_per_chunk);

}  // namespace zeroth::optim::simd
