#include "kernels/simd/rms_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/rms_norm.cpp"
// clang-format off
#include <hwy/foreach_target.h>
#include "kernels/simd/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();

namespace zeroth::kernels::simd::HWY_NAMESPACE {

template <typename T>
HWY_INLINE float mean_square(const T* x, std::size_t columns) {
  V sum = all(0);
  for_each_vector(columns, [&](std::size_t i, auto lanes) HWY_ATTR {
    const V value = lanes.load(x + i);
    sum = hn::MulAdd(value, value, sum);
  });
  return sum_of(sum) / static_cast<float>(columns);
}

template <typename T>
HWY_INLINE float mean_square_of_sum(const T* x, const T* added, T* to, std::size_t columns) {
  V sum = all(0);
  for_each_vector(columns, [&](std::size_t i, auto lanes) HWY_ATTR {
    const V value = rounded<T>(hn::Add(lanes.load(x + i), lanes.load(added + i)));
    lanes.store(value, to + i);
    sum = hn::MulAdd(value, value, sum);
  });
  return sum_of(sum) / static_cast<float>(columns);
}

template <typename T, bool kRoundsFirst>
HWY_INLINE void scale_row(
    const T* x, float inverse, const float* factor, T* y, std::size_t columns) {
  const V scale = all(inverse);
  for_each_vector(columns, [&](std::size_t i, auto lanes) HWY_ATTR {
    const V normed = hn::Mul(lanes.load(x + i), scale);
    lanes.store(hn::Mul(kRoundsFirst ? rounded<T>(normed) : normed, lanes.load(factor + i)), y + i);
  });
}

template <typename T>
HWY_INLINE void forward_row(const RmsNormForward& work, std::size_t row) {
  const std::size_t columns = work.columns;
  const T* x = static_cast<const T*>(work.x) + row * columns;
  T* const y = static_cast<T*>(work.y) + row * columns;
  float mean = 0;
  if (work.added != nullptr) {
    T* const sum = static_cast<T*>(work.sum) + row * columns;
    mean = mean_square_of_sum(x, static_cast<const T*>(work.added) + row * columns, sum, columns);
    x = sum;
  } else {
    mean = mean_square(x, columns);
  }
  const auto inverse = static_cast<float>(1.0 / std::sqrt(static_cast<double>(mean) + work.epsilon));
  work.inverse[row] = inverse;
  if (work.rounds_first) {
    scale_row<T, true>(x, inverse, work.factor, y, columns);
  } else {
    scale_row<T, false>(x, inverse, work.factor, y, columns);
  }
}

// The mean of (grad * factor) * normed, which is how far the gradient points along the row; on the
// way the gradient of the factor.
template <typename T, bool kGradFactor>
HWY_INLINE float mean_along(const T* x,
                            const T* grad,
                            float inverse,
                            const float* factor,
                            float* grad_factor,
                            std::size_t columns) {
  const V scale = all(inverse);
  V along = all(0);
  for_each_vector(columns, [&](std::size_t i, auto lanes) HWY_ATTR {
    const V by_normed = hn::Mul(lanes.load(grad + i), hn::Mul(lanes.load(x + i), scale));
    along = hn::MulAdd(by_normed, lanes.load(factor + i), along);
    if constexpr (kGradFactor) {
      lanes.store(hn::Add(lanes.load(grad_factor + i), by_normed), grad_factor + i);
    }
  });
  return sum_of(along) / static_cast<float>(columns);
}

template <typename T, bool kBeside>
HWY_INLINE void grad_row(const RmsNormBackward& work, std::size_t row, float along) {
  const std::size_t columns = work.columns;
  const T* const x = static_cast<const T*>(work.x) + row * columns;
  const T* const grad = static_cast<const T*>(work.grad) + row * columns;
  const T* const beside =
      kBeside ? static_cast<const T*>(work.grad_beside) + row * columns : nullptr;
  T* const grad_x = static_cast<T*>(work.grad_x) + row * columns;
  const float* const factor = work.factor;
  const V inverse = all(work.inverse[row]);
  const V along_x = hn::Mul(all(along), inverse);
  for_each_vector(columns, [&](std::size_t i, auto lanes) HWY_ATTR {
    const V scaled = hn::Mul(lanes.load(grad + i), lanes.load(factor + i));
    V result = hn::Mul(hn::NegMulAdd(lanes.load(x + i), along_x, scaled), inverse);
    if constexpr (kBeside) {
      result = hn::Add(result, lanes.load(beside + i));
    }
    lanes.store(result, grad_x + i);
  });
}

template <typename T>
HWY_INLINE void backward_row(const RmsNormBackward& work, std::size_t row, float* grad_factor) {
  const T* const x = static_cast<const T*>(work.x) + row * work.columns;
  const T* const grad = static_cast<const T*>(work.grad) + row * work.columns;
  const float inverse = work.inverse[row];
  const float along =
      grad_factor == nullptr
          ? mean_along<T, false>(x, grad, inverse, work.factor, nullptr, work.columns)
          : mean_along<T, true>(x, grad, inverse, work.factor, grad_factor, work.columns);
  if (work.grad_x == nullptr) {
    return;
  }
  if (work.grad_beside != nullptr) {
    grad_row<T, true>(work, row, along);
  } else {
    grad_row<T, false>(work, row, along);
  }
}

void forward_rows(const RmsNormForward& work, std::size_t first, std::size_t last) {
  with_type(work.storage, [&](auto type) HWY_ATTR {
    for (std::size_t row = first; row < last; ++row) {
      forward_row<decltype(type)>(work, row);
    }
  });
}

void backward_rows(const RmsNormBackward& work,
                   std::size_t first,
                   std::size_t last,
                   float* grad_factor) {
  with_type(work.storage, [&](auto type) HWY_ATTR {
    for (std::size_t row = first; row < last; ++row) {
      backward_row<decltype(type)>(work, row, grad_factor);
    }
  });
}

}  // namespace zeroth::kernels::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace zeroth::kernels::simd {

HWY_EXPORT(forward_rows);
HWY_EXPORT(backward_rows);

void rms_norm(const RmsNormForward& work, std::size_t first, std::size_t last) {
  HWY_DYNAMIC_DISPATCH(forward_rows)(work, first, last);
}

void rms_norm(const RmsNormBackward& work,
              std::size_t first,
              std::size_t last,
              float* grad_factor) {
  HWY_DYNAMIC_DISPATCH(backward_rows)(work, first, last, grad_factor);
}

}  // namespace zeroth::kernels::simd

#endif  // HWY_ONCE
