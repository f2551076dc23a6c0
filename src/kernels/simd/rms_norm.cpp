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

// Squares are summed in one order on every kind of processor, so that a norm has the same bits on
// all of them: 32 interleaved sums in cascades of 16, folded to 8, then one lane after the other. It
// is the order of ATen's sums too, so that what is rounded away is what Transformers rounds away.
constexpr std::size_t kStripe = 32;
constexpr std::size_t kCascade = 16;
constexpr std::size_t kOctet = 8;
constexpr std::size_t kVectors = kStripe / hn::MaxLanes(F32());

// `sums` is the stripe's interleaved sums; `rest` the terms behind the last whole stripe.
HWY_INLINE float folded(float* sums, const float* rest, std::size_t rest_count) {
  const std::size_t whole = rest_count / kOctet * kOctet;
  for (std::size_t i = 0; i < whole; ++i) {
    sums[i % kOctet] += rest[i];
  }
  for (std::size_t i = kOctet; i < kStripe; ++i) {
    sums[i % kOctet] += sums[i];
  }
  float sum = 0;
  for (std::size_t i = whole; i < rest_count; ++i) {
    sum += rest[i];
  }
  for (std::size_t i = 0; i < kOctet; ++i) {
    sum += sums[i];
  }
  return sum;
}

// The sum of term(place, Whole or Part), a vector each, over `count` numbers.
template <typename Term>
HWY_INLINE float sum_over(std::size_t count, const Term& term) {
  const std::size_t lanes = hn::Lanes(F32());
  V total[kVectors];
  V sums[kVectors];
  for (std::size_t v = 0; v < kVectors; ++v) {
    total[v] = sums[v] = all(0);
  }
  std::size_t place = 0;
  for (std::size_t stripe = 1; place + kStripe <= count; ++stripe, place += kStripe) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      sums[v] = hn::Add(sums[v], term(place + v * lanes, Whole()));
    }
    if (stripe % kCascade == 0) {
      for (std::size_t v = 0; v < kVectors; ++v) {
        total[v] = hn::Add(total[v], sums[v]);
        sums[v] = all(0);
      }
    }
  }
  HWY_ALIGN float stripe_sums[kStripe];
  HWY_ALIGN float rest[kStripe];
  for (std::size_t v = 0; v < kVectors; ++v) {
    store(hn::Add(total[v], sums[v]), stripe_sums + v * lanes);
  }
  for_each_vector(count - place, [&](std::size_t i, auto part) HWY_ATTR {
    store(term(place + i, part), rest + i);
  });
  return folded(stripe_sums, rest, count - place);
}

template <typename T>
HWY_INLINE float mean_square(const T* x, std::size_t columns) {
  const float sum = sum_over(columns, [&](std::size_t i, auto lanes) HWY_ATTR {
    const V value = lanes.load(x + i);
    return hn::Mul(value, value);
  });
  return sum / static_cast<float>(columns);
}

template <typename T>
HWY_INLINE float mean_square_of_sum(const T* x, const T* added, T* to, std::size_t columns) {
  const float sum = sum_over(columns, [&](std::size_t i, auto lanes) HWY_ATTR {
    const V value = rounded<T>(hn::Add(lanes.load(x + i), lanes.load(added + i)));
    lanes.store(value, to + i);
    return hn::Mul(value, value);
  });
  return sum / static_cast<float>(columns);
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
  const float inverse = 1.0F / std::sqrt(mean + work.epsilon);
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
