#include "kernels/simd/gated.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/gated.cpp"
// clang-format off
#include <hwy/foreach_target.h>
#include "kernels/simd/functions-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();

namespace zeroth::kernels::simd::HWY_NAMESPACE {

// An activation and its slope at x.
struct ValueAndSlope {
  V value, slope;
};

// x s and s (1 + x (1 - s)), s the sigmoid. Both s and 1 - s are formed from exp(-|x|), so that
// neither loses its small values.
struct Silu {
  static HWY_INLINE V value(V x) {
    const V e = exp_of_negative(hn::Neg(hn::Abs(x)));
    const V share = hn::IfThenElse(hn::Ge(x, all(0)), x, hn::Mul(x, e));
    return hn::Div(share, hn::Add(all(1), e));
  }

  static HWY_INLINE ValueAndSlope both(V x) {
    const V e = exp_of_negative(hn::Neg(hn::Abs(x)));
    const V larger = hn::Div(all(1), hn::Add(all(1), e));
    const V smaller = hn::Mul(e, larger);
    const auto positive = hn::Ge(x, all(0));
    const V sigmoid = hn::IfThenElse(positive, larger, smaller);
    const V rest = hn::IfThenElse(positive, smaller, larger);
    return {hn::Mul(x, sigmoid), hn::Mul(sigmoid, hn::MulAdd(x, rest, all(1)))};
  }
};

// x P(x) and P(x) + x p(x), P and p the normal distribution's function and density.
struct Gelu {
  static constexpr float kSqrtHalf = 0.707106781186547524F;
  static constexpr float kDensityAtZero = 0.398942280401432678F;

  static HWY_INLINE V distribution(V x) {
    return hn::MulAdd(erf_of(hn::Mul(x, all(kSqrtHalf))), all(0.5F), all(0.5F));
  }

  static HWY_INLINE V value(V x) { return hn::Mul(x, distribution(x)); }

  static HWY_INLINE ValueAndSlope both(V x) {
    const V below = distribution(x);
    const V e = exp_of_negative(hn::Mul(hn::Mul(x, all(-0.5F)), x));
    const V density = hn::Mul(e, all(kDensityAtZero));
    return {hn::Mul(x, below), hn::MulAdd(x, density, below)};
  }
};

// x (1 + t) / 2 with t = tanh(sqrt(2 / pi) (x + 0.044715 x^3)).
struct GeluTanh {
  static constexpr float kScale = 0.797884560802865356F;
  static constexpr float kCubic = 0.044715F;

  static HWY_INLINE V tanh_at(V x, V square) {
    const V inner = hn::Mul(x, hn::MulAdd(square, all(kScale * kCubic), all(kScale)));
    return tanh_of(inner);
  }

  static HWY_INLINE V value(V x) {
    return hn::Mul(x, hn::MulAdd(tanh_at(x, hn::Mul(x, x)), all(0.5F), all(0.5F)));
  }

  static HWY_INLINE ValueAndSlope both(V x) {
    const V square = hn::Mul(x, x);
    const V tanh = tanh_at(x, square);
    const V below = hn::MulAdd(tanh, all(0.5F), all(0.5F));
    const V slope_of_tanh = hn::NegMulAdd(tanh, tanh, all(1));
    const V slope_of_inner = hn::MulAdd(square, all(3 * kScale * kCubic), all(kScale));
    const V bend = hn::Mul(hn::Mul(hn::Mul(x, all(0.5F)), slope_of_tanh), slope_of_inner);
    return {hn::Mul(x, below), hn::Add(below, bend)};
  }
};

template <typename Run>
HWY_INLINE void with_activation(Gate activation, const Run& run) {
  switch (activation) {
    case Gate::kSilu:
      return run(Silu());
    case Gate::kGelu:
      return run(Gelu());
    case Gate::kGeluTanh:
      return run(GeluTanh());
  }
}

template <typename T, typename Activation>
HWY_INLINE void forward(const T* gate, const T* up, T* out, std::size_t count) {
  for_each_vector(count, [&](std::size_t i, auto lanes) HWY_ATTR {
    lanes.store(hn::Mul(Activation::value(lanes.load(gate + i)), lanes.load(up + i)), out + i);
  });
}

template <typename T, typename Activation>
HWY_INLINE void backward(
    const T* gate, const T* up, const T* grad, T* grad_gate, T* grad_up, std::size_t count) {
  for_each_vector(count, [&](std::size_t i, auto lanes) HWY_ATTR {
    const ValueAndSlope active = Activation::both(lanes.load(gate + i));
    const V given = lanes.load(grad + i);
    lanes.store(hn::Mul(hn::Mul(given, lanes.load(up + i)), active.slope), grad_gate + i);
    lanes.store(hn::Mul(given, active.value), grad_up + i);
  });
}

void forward_range(const Gated& work, void* out, std::size_t first, std::size_t last) {
  with_type(work.storage, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    with_activation(work.activation, [&](auto activation) HWY_ATTR {
      forward<T, decltype(activation)>(static_cast<const T*>(work.gate) + first,
                                       static_cast<const T*>(work.up) + first,
                                       static_cast<T*>(out) + first,
                                       last - first);
    });
  });
}

void backward_range(const Gated& work,
                    const void* grad,
                    void* grad_gate,
                    void* grad_up,
                    std::size_t first,
                    std::size_t last) {
  with_type(work.storage, [&](auto type) HWY_ATTR {
    using T = decltype(type);
    with_activation(work.activation, [&](auto activation) HWY_ATTR {
      backward<T, decltype(activation)>(static_cast<const T*>(work.gate) + first,
                                        static_cast<const T*>(work.up) + first,
                                        static_cast<const T*>(grad) + first,
                                        static_cast<T*>(grad_gate) + first,
                                        static_cast<T*>(grad_up) + first,
                                        last - first);
    });
  });
}

}  // namespace zeroth::kernels::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace zeroth::kernels::simd {

HWY_EXPORT(forward_range);
HWY_EXPORT(backward_range);

void gated(const Gated& work, void* out, std::size_t first, std::size_t last) {
  HWY_DYNAMIC_DISPATCH(forward_range)(work, out, first, last);
}

void gated_backward(const Gated& work,
                    const void* grad,
                    void* grad_gate,
                    void* grad_up,
                    std::size_t first,
                    std::size_t last) {
  HWY_DYNAMIC_DISPATCH(backward_range)(work, grad, grad_gate, grad_up, first, last);
}

}  // namespace zeroth::kernels::simd

#endif  // HWY_ONCE
