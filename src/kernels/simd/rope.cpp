#include "kernels/simd/rope.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/rope.cpp"
// clang-format off
#include <hwy/foreach_target.h>
#include "kernels/simd/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();

namespace zeroth::kernels::simd::HWY_NAMESPACE {

// No fused product: a rotation that cancels gives 0 as it does without vectors.
template <typename T, bool kBackwards>
HWY_INLINE void turn_head(
    const T* x, const float* cos, const float* sin, T* out, std::size_t half) {
  for_each_vector(half, [&](std::size_t i, auto lanes) HWY_ATTR {
    const V c = lanes.load(cos + i);
    const V s = lanes.load(sin + i);
    const V first = lanes.load(x + i);
    const V second = lanes.load(x + half + i);
    const V first_by_sin = hn::Mul(first, s);
    const V second_by_sin = hn::Mul(second, s);
    const V first_by_cos = hn::Mul(first, c);
    const V second_by_cos = hn::Mul(second, c);
    if constexpr (kBackwards) {
      lanes.store(hn::Add(first_by_cos, second_by_sin), out + i);
      lanes.store(hn::Sub(second_by_cos, first_by_sin), out + half + i);
    } else {
      lanes.store(hn::Sub(first_by_cos, second_by_sin), out + i);
      lanes.store(hn::Add(second_by_cos, first_by_sin), out + half + i);
    }
  });
}

template <typename T, bool kBackwards>
HWY_INLINE void turn_place(const Rope& work, std::size_t row, std::size_t token) {
  const auto& strides = work.strides;
  const auto& out_strides = work.out_strides;
  const std::size_t angles = row * work.row_of_angles + token * work.half;
  const T* x = static_cast<const T*>(work.x) + row * strides[0] + token * strides[1];
  T* out = static_cast<T*>(work.out) + row * out_strides[0] + token * out_strides[1];
  for (std::size_t head = 0; head < work.heads; ++head) {
    turn_head<T, kBackwards>(x, work.cos + angles, work.sin + angles, out, work.half);
    x += strides[2];
    out += out_strides[2];
  }
}

void turn_places(const Rope& work, std::size_t first, std::size_t last) {
  with_type(work.storage, [&](auto type) HWY_ATTR {
    for (std::size_t place = first; place < last; ++place) {
      const std::size_t row = place / work.tokens;
      const std::size_t token = place % work.tokens;
      if (work.backwards) {
        turn_place<decltype(type), true>(work, row, token);
      } else {
        turn_place<decltype(type), false>(work, row, token);
      }
    }
  });
}

}  // namespace zeroth::kernels::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace zeroth::kernels::simd {

HWY_EXPORT(turn_places);

void rope(const Rope& work, std::size_t first, std::size_t last) {
  HWY_DYNAMIC_DISPATCH(turn_places)(work, first, last);
}

}  // namespace zeroth::kernels::simd

#endif  // HWY_ONCE
