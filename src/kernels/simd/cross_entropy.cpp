#include "kernels/simd/cross_entropy.h"

#include <algorithm>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/cross_entropy.cpp"
// clang-format off
#include <hwy/foreach_target.h>
#include "kernels/simd/functions-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();

namespace zeroth::kernels::simd::HWY_NAMESPACE {

// Small enough that its second walk finds it near the processor.
constexpr std::size_t kBlock = 1024;

// Logits as they stand.
struct Uncapped {
  HWY_INLINE V value(V x) const { return x; }

  // The value, and `grad` of it as that of x.
  HWY_INLINE V backward(V /*value*/, V grad) const { return grad; }
};

struct Capped {
  float cap;

  HWY_INLINE V value(V x) const { return hn::Mul(tanh_of(hn::Mul(x, all(1 / cap))), all(cap)); }

  HWY_INLINE V backward(V value, V grad) const {
    const V tanh = hn::Mul(value, all(1 / cap));
    return hn::Mul(grad, hn::NegMulAdd(tanh, tanh, all(1)));
  }
};

template <typename T, typename Cap>
HWY_INLINE float block_max(const T* logits, std::size_t count, const Cap& cap) {
  V max = all(-std::numeric_limits<float>::infinity());
  for_each_vector(count, [&](std::size_t i, auto lanes) HWY_ATTR {
    const V x = lanes.or_else(lanes.load(logits + i), -std::numeric_limits<float>::infinity());
    max = hn::Max(max, x);
  });
  return hn::GetLane(cap.value(all(max_of(max))));  // the largest stays so under the cap
}

template <typename T, typename Cap>
HWY_INLINE float block_sum(const T* logits, std::size_t count, float max, const Cap& cap) {
  V sum = all(0);
  for_each_vector(count, [&](std::size_t i, auto lanes) HWY_ATTR {
    const V e = exp_of_negative(hn::Sub(cap.value(lanes.load(logits + i)), all(max)));
    sum = hn::Add(sum, lanes.or_else(e, 0));
  });
  return sum_of(sum);
}

struct MaxAndSum {
  float max;
  double sum;
};

// By blocks: a block with a larger number shrinks the sum of those before it.
template <typename T, typename Cap>
HWY_INLINE MaxAndSum max_and_sum(const T* logits, std::size_t columns, const Cap& cap) {
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  MaxAndSum row{kNone, 0};
  for (std::size_t begin = 0; begin < columns; begin += kBlock) {
    const std::size_t count = std::min(kBlock, columns - begin);
    const float max = block_max(logits + begin, count, cap);
    if (max > row.max) {
      row.sum *= std::exp(static_cast<double>(row.max) - static_cast<double>(max));
      row.max = max;
    }
    // Nothing but minus infinity so far: minus itself that would not be a number.
    const float base = row.max == kNone ? 0 : row.max;
    row.sum += static_cast<double>(block_sum(logits + begin, count, base, cap));
  }
  return row;
}

template <typename T, typename Cap>
HWY_INLINE void grad_row(const T* logits,
                         std::size_t columns,
                         std::size_t target,
                         const RowSums& sums,
                         float scale,
                         T* grad,
                         const Cap& cap) {
  const V max = all(sums.max);
  const V inverse = all(sums.inverse_sum);
  const V target_value = cap.value(Part{1}.load(logits + target));
  for_each_vector(columns, [&](std::size_t i, auto lanes) HWY_ATTR {
    const V value = cap.value(lanes.load(logits + i));
    const V probability = hn::Mul(exp_of_negative(hn::Sub(value, max)), inverse);
    lanes.store(cap.backward(value, hn::Mul(probability, all(scale))), grad + i);
  });
  const V probability = hn::Mul(exp_of_negative(hn::Sub(target_value, max)), inverse);
  const V missed = hn::Mul(hn::Sub(probability, all(1)), all(scale));
  Part{1}.store(cap.backward(target_value, missed), grad + target);
}

// Calls run(T(), cap).
template <typename Run>
HWY_INLINE void with_type_and_cap(const CrossEntropy& work, const Run& run) {
  with_type(work.storage, [&](auto type) HWY_ATTR {
    if (work.soft_cap > 0) {
      run(type, Capped{work.soft_cap});
    } else {
      run(type, Uncapped());
    }
  });
}

void loss_rows(
    const CrossEntropy& work, RowSums* sums, float* losses, std::size_t first, std::size_t last) {
  with_type_and_cap(work, [&](auto type, auto cap) HWY_ATTR {
    using T = decltype(type);
    for (std::size_t row = first; row < last; ++row) {
      const T* const logits = static_cast<const T*>(work.logits) + row * work.columns;
      const MaxAndSum found = max_and_sum(logits, work.columns, cap);
      const auto target = static_cast<std::size_t>(work.targets[row]);
      const float value = hn::GetLane(cap.value(Part{1}.load(logits + target)));
      sums[row] = {found.max, static_cast<float>(1 / found.sum)};
      losses[row] = static_cast<float>(static_cast<double>(found.max) - static_cast<double>(value) +
                                       std::log(found.sum));
    }
  });
}

void grad_rows(const CrossEntropy& work,
               const RowSums* sums,
               float scale,
               void* grads,
               std::size_t first,
               std::size_t last) {
  with_type_and_cap(work, [&](auto type, auto cap) HWY_ATTR {
    using T = decltype(type);
    for (std::size_t row = first; row < last; ++row) {
      grad_row(static_cast<const T*>(work.logits) + row * work.columns,
               work.columns,
               static_cast<std::size_t>(work.targets[row]),
               sums[row],
               scale,
               static_cast<T*>(grads) + row * work.columns,
               cap);
    }
  });
}

}  // namespace zeroth::kernels::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace zeroth::kernels::simd {

HWY_EXPORT(loss_rows);
HWY_EXPORT(grad_rows);

void cross_entropy(
    const CrossEntropy& work, RowSums* sums, float* losses, std::size_t first, std::size_t last) {
  HWY_DYNAMIC_DISPATCH(loss_rows)(work, sums, losses, first, last);
}

void cross_entropy_backward(const CrossEntropy& work,
                            const RowSums* sums,
                            float scale,
                            void* grads,
                            std::size_t first,
                            std::size_t last) {
  HWY_DYNAMIC_DISPATCH(grad_rows)(work, sums, scale, grads, first, last);
}

}  // namespace zeroth::kernels::simd

#endif  // HWY_ONCE
