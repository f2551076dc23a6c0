#include "optim/simd/norm.h"

#include <algorithm>

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

// The sums of whole groups of eight of `kChunks` chunks side by side, since one chunk alone would
// wait for each addition. A square of fp32 is exact in fp64, so fusing it into the sum changes
// nothing.
template <std::size_t kChunks>
HWY_INLINE void sum_groups(const float* values, std::size_t count, double* sums) {
  D lanes[kChunks][kVectors];
  for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      lanes[chunk][v] = hn::Zero(F64());
    }
  }
  const std::size_t width = hn::Lanes(F64());
  for (std::size_t i = 0; i + kSums <= count; i += kSums) {
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        const float* const from = values + chunk * kChunk + i + v * width;
        const D value = hn::PromoteTo(F64(), hn::LoadU(F32(), from));
        lanes[chunk][v] = hn::MulAdd(value, value, lanes[chunk][v]);
      }
    }
  }
  for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(lanes[chunk][v], F64(), sums + chunk * kSums + v * width);
    }
  }
}

HWY_INLINE double sum_in_order(const double* sums) {
  double sum = 0;
  for (std::size_t i = 0; i < kSums; ++i) {
    sum += sums[i];
  }
  return sum;
}

HWY_INLINE double sum_of_chunk(const float* values, std::size_t count) {
  double sums[kSums];
  sum_groups<1>(values, count, sums);
  const std::size_t whole = count / kSums * kSums;
  for (std::size_t i = whole; i < count; ++i) {
    const double value = static_cast<double>(values[i]);
    sums[i - whole] += value * value;
  }
  return sum_in_order(sums);
}

void sum_chunks(const float* values, std::size_t count, double* one_per_chunk) {
  constexpr std::size_t kBeside = 4;
  std::size_t place = 0;
  for (; place + kBeside * kChunk <= count; place += kBeside * kChunk) {
    double sums[kBeside * kSums];
    sum_groups<kBeside>(values + place, kChunk, sums);
    for (std::size_t chunk = 0; chunk < kBeside; ++chunk) {
      *one_per_chunk++ = sum_in_order(sums + chunk * kSums);
    }
  }
  for (; place < count; place += kChunk) {
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
