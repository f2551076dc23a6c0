#include "optim/simd/norm.h"

#include <algorithm>
#include <numeric>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/simd/norm.cpp"
// clang-format off
#include <hwy/foreach_target.h>
#include <hwy/highway.h>
// clang-format on

HWY_BEFORE_NAMESPACE();

namespace zeroth::optim::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

constexpr std::size_t kSums = 8;

using F64 = hn::CappedTag<double, kSums>;
using F32 = hn::Rebind<float, F64>;
using D = hn::Vec<F64>;

constexpr std::size_t kVectors = kSums / hn::MaxLanes(F64());

// A square of fp32 is exact in fp64, so fusing it into the sum changes nothing. One chunk after the
// other: several side by side do not wait for their additions, but memory is slower still, and
// fastest in one stream.
HWY_INLINE double sum_of_chunk(const float* values, std::size_t count) {
  const F64 f64;
  const std::size_t width = hn::Lanes(f64);
  const std::size_t whole = count / kSums * kSums;
  D lanes[kVectors];
  for (D& lane : lanes) {
    lane = hn::Zero(f64);
  }
  for (std::size_t i = 0; i < whole; i += kSums) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const D value = hn::PromoteTo(f64, hn::LoadU(F32(), values + i + v * width));
      lanes[v] = hn::MulAdd(value, value, lanes[v]);
    }
  }
  double sums[kSums];
  for (std::size_t v = 0; v < kVectors; ++v) {
    hn::StoreU(lanes[v], f64, sums + v * width);
  }
  for (std::size_t i = whole; i < count; ++i) {
    const double value = static_cast<double>(values[i]);
    sums[i - whole] += value * value;
  }
  return std::accumulate(sums, sums + kSums, 0.0);
}

void sum_chunks(const float* values, std::size_t count, double* one_per_chunk) {
  for (std::size_t place = 0; place < count; place += kChunk) {
    *one_per_chunk++ = sum_of_chunk(values + place, std::min(kChunk, count - place));
  }
}

}  // namespace zeroth::optim::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace zeroth::optim::simd {

HWY_EXPORT(sum_chunks);

void sums_of_squares(const float* values, std::size_t count, double* one_per_chunk) {
  HWY_DYNAMIC_DISPATCH(sum_chunks)(values, count, one_per_chunk);
}

}  // namespace zeroth::optim::simd

#endif  // HWY_ONCE
