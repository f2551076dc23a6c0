#include "optim/simd/moves.h"

#include <algorithm>
#include <cstdint>

#include <hwy/cache_control.h>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "optim/simd/moves.cpp"
// clang-format off
#include <hwy/foreach_target.h>
#include "kernels/simd/lanes-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();

namespace zeroth::optim::simd::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;
namespace lanes = kernels::simd::HWY_NAMESPACE;

using lanes::all;
using lanes::V;

// ---- The pass over memory

// How the rounded weights are stored: nowhere, or as Bf16 or Fp16, past the caches or not.
struct NotRounded {
  static constexpr std::size_t kAlignment = 1;

  template <typename Lanes>
  HWY_INLINE void store(const Lanes& /*part*/, V /*weight*/, std::size_t /*place*/) const {}
};

template <typename T>
struct Rounded {
  static constexpr std::size_t kAlignment = 1;
  T* to;

  template <typename Lanes>
  HWY_INLINE void store(const Lanes& part, V weight, std::size_t place) const {
    part.store(weight, to + place);
  }
};

HWY_INLINE hn::Vec<lanes::U16> bits_of(V x, lanes::Bf16 /*type*/) {
  return lanes::to_bf16(x);
}

HWY_INLINE hn::Vec<lanes::U16> bits_of(V x, lanes::Fp16 /*type*/) {
  return lanes::to_fp16(x);
}

template <typename T>
struct Streamed {
  static constexpr std::size_t kAlignment = hn::MaxLanes(lanes::U16()) * sizeof(T);
  T* to;

  template <typename Lanes>
  HWY_INLINE void store(const Lanes& part, V weight, std::size_t place) const {
    part.store(weight, to + place);
  }

  HWY_INLINE void store(const lanes::Whole& part, V weight, std::size_t place) const {
    if constexpr (kAlignment >= HWY_STREAM_MULTIPLE) {
      hn::Stream(bits_of(weight, T()),
                 lanes::U16(),
                 reinterpret_cast<std::uint16_t*>(HWY_ASSUME_ALIGNED(to + place, kAlignment)));
    } else {
      part.store(weight, to + place);
    }
  }
};

// How many moments a rule reads and how many of them it moves.
template <int kRead, int kMoved = kRead>
struct Moments {};

// weight = move(gradient, weight, first, second) for the vectors of [begin, end).
template <int kRead, int kMoved, typename Destination, typename Move>
HWY_INLINE void move_range(Moments<kRead, kMoved> /*moments*/,
                           const Elements& elements,
                           std::size_t begin,
                           std::size_t end,
                           const Destination& destination,
                           const Move& move) {
  float* HWY_RESTRICT master = elements.master + begin;
  const float* HWY_RESTRICT gradients = elements.gradients + begin;
  float* HWY_RESTRICT first = elements.first + (kRead > 0 ? begin : 0);
  float* HWY_RESTRICT second = elements.second + (kRead > 1 ? begin : 0);
  lanes::for_each_vector(end - begin, [&](std::size_t i, auto part) HWY_ATTR {
    V moment1 = kRead > 0 ? part.load(first + i) : all(0);
    V moment2 = kRead > 1 ? part.load(second + i) : all(0);
    const V weight = move(part.load(gradients + i), part.load(master + i), moment1, moment2);
    if constexpr (kMoved > 0) {
      part.store(moment1, first + i);
    }
    if constexpr (kMoved > 1) {
      part.store(moment2, second + i);
    }
    part.store(weight, master + i);
    destination.store(part, weight, begin + i);
  });
}

template <typename T, typename Moments, typename Move>
HWY_INLINE void move_and_round(Moments moments, const Elements& elements, const Move& move) {
  T* const to = static_cast<T*>(elements.rounded);
  if (!elements.streams) {
    move_range(moments, elements, 0, elements.count, Rounded<T>{to}, move);
    return;
  }
  constexpr std::size_t kAlignment = Streamed<T>::kAlignment;
  const std::size_t past = reinterpret_cast<std::uintptr_t>(to) % kAlignment;
  const std::size_t head =
      std::min(elements.count, past == 0 ? 0 : (kAlignment - past) / sizeof(T));
  move_range(moments, elements, 0, head, Rounded<T>{to}, move);
  move_range(moments, elements, head, elements.count, Streamed<T>{to}, move);
  hwy::FlushStream();
}

template <typename Moments, typename Move>
HWY_INLINE void move_all(Moments moments, const Elements& elements, const Move& move) {
  if (elements.rounded == nullptr) {
    move_range(moments, elements, 0, elements.count, NotRounded(), move);
  } else if (elements.rounded_type == Storage::kBf16) {
    move_and_round<lanes::Bf16>(moments, elements, move);
  } else {
    move_and_round<lanes::Fp16>(moments, elements, move);
  }
}

// ---- The rules

template <bool kDecoupled>
HWY_INLINE void move_adam(const Elements& elements, const AdamFactors& f) {
  const V scale = all(f.gradient_scale);
  const V keep = all(f.keep);
  const V decay = all(f.gradient_decay);
  const V rest1 = all(f.rest1);
  const V beta2 = all(f.beta2);
  const V rest2 = all(f.rest2);
  const V correction = all(f.inverse_root_correction);
  const V epsilon = all(f.epsilon);
  const V step_size = all(f.step_size);
  move_all(Moments<2>(), elements, [=](V gradient, V weight, V& first, V& second) HWY_ATTR {
    gradient = hn::Mul(gradient, scale);
    if constexpr (kDecoupled) {
      weight = hn::Mul(weight, keep);
    } else {
      gradient = hn::Add(gradient, hn::Mul(decay, weight));
    }
    first = hn::Add(first, hn::Mul(rest1, hn::Sub(gradient, first)));
    second = hn::Add(hn::Mul(beta2, second), hn::Mul(hn::Mul(rest2, gradient), gradient));
    const V root = hn::Add(hn::Mul(hn::Sqrt(second), correction), epsilon);
    return hn::Sub(weight, hn::Div(hn::Mul(step_size, first), root));
  });
}

void move_adamw(const Elements& elements, const AdamFactors& f) {
  move_adam<true>(elements, f);
}

void move_adam_l2(const Elements& elements, const AdamFactors& f) {
  move_adam<false>(elements, f);
}

HWY_INLINE V decayed(V gradient, V scale, V decay, V weight) {
  return hn::Add(hn::Mul(gradient, scale), hn::Mul(decay, weight));
}

void move_sgd(const Elements& elements, const SgdFactors& f) {
  const V scale = all(f.gradient_scale);
  const V decay = all(f.decay);
  const V rate = all(f.rate);
  move_all(Moments<0>(), elements, [=](V gradient, V weight, V&, V&) HWY_ATTR {
    return hn::Sub(weight, hn::Mul(rate, decayed(gradient, scale, decay, weight)));
  });
}

template <bool kNesterov>
HWY_INLINE void move_with_momentum(const Elements& elements, const SgdFactors& f) {
  const V scale = all(f.gradient_scale);
  const V decay = all(f.decay);
  const V rate = all(f.rate);
  const V momentum = all(f.momentum);
  const V addition = all(f.addition);
  move_all(Moments<1>(), elements, [=](V gradient, V weight, V& velocity, V&) HWY_ATTR {
    gradient = decayed(gradient, scale, decay, weight);
    velocity = hn::Add(hn::Mul(momentum, velocity), hn::Mul(addition, gradient));
    const V move = kNesterov ? hn::Add(gradient, hn::Mul(momentum, velocity)) : velocity;
    return hn::Sub(weight, hn::Mul(rate, move));
  });
}

void move_sgd_momentum(const Elements& elements, const SgdFactors& f) {
  move_with_momentum<false>(elements, f);
}

void move_sgd_nesterov(const Elements& elements, const SgdFactors& f) {
  move_with_momentum<true>(elements, f);
}

void move_lion(const Elements& elements, const LionFactors& f) {
  const V scale = all(f.gradient_scale);
  const V beta1 = all(f.beta1);
  const V rest1 = all(f.rest1);
  const V beta2 = all(f.beta2);
  const V rest2 = all(f.rest2);
  const V keep = all(f.keep);
  const V rate = all(f.rate);
  move_all(Moments<1>(), elements, [=](V gradient, V weight, V& momentum, V&) HWY_ATTR {
    const V zero = all(0);
    const V one = all(1);
    gradient = hn::Mul(gradient, scale);
    const V blend = hn::Add(hn::Mul(beta1, momentum), hn::Mul(rest1, gradient));
    const V sign = hn::Sub(hn::IfThenElseZero(hn::Gt(blend, zero), one),
                           hn::IfThenElseZero(hn::Lt(blend, zero), one));  // 0 of 0
    momentum = hn::Add(hn::Mul(beta2, momentum), hn::Mul(rest2, gradient));
    return hn::Sub(hn::Mul(weight, keep), hn::Mul(rate, sign));
  });
}

void move_adagrad(const Elements& elements, const AdagradFactors& f) {
  const V scale = all(f.gradient_scale);
  const V decay = all(f.decay);
  const V rate = all(f.rate);
  const V epsilon = all(f.epsilon);
  move_all(Moments<1>(), elements, [=](V gradient, V weight, V& sum, V&) HWY_ATTR {
    gradient = decayed(gradient, scale, decay, weight);
    sum = hn::Add(sum, hn::Mul(gradient, gradient));
    return hn::Sub(weight, hn::Div(hn::Mul(rate, gradient), hn::Add(hn::Sqrt(sum), epsilon)));
  });
}

// Where a weight would go, before learning rate and ratio.
struct LambDirection {
  V correction, root_correction, epsilon, decay;
};

HWY_INLINE LambDirection direction_of(const LambFactors& f) {
  return {all(f.inverse_correction), all(f.inverse_root_correction), all(f.epsilon), all(f.decay)};
}

HWY_INLINE V direction(const LambDirection& f, V weight, V first, V second) {
  const V root = hn::Add(hn::Mul(hn::Sqrt(second), f.root_correction), f.epsilon);
  return hn::Add(hn::Div(hn::Mul(first, f.correction), root), hn::Mul(f.decay, weight));
}

void measure_lamb(const Elements& elements, const LambFactors& f, float* directions) {
  const LambDirection constants = direction_of(f);
  const V scale = all(f.gradient_scale);
  const V beta1 = all(f.beta1);
  const V rest1 = all(f.rest1);
  const V beta2 = all(f.beta2);
  const V rest2 = all(f.rest2);
  lanes::for_each_vector(elements.count, [&](std::size_t i, auto part) HWY_ATTR {
    const V gradient = hn::Mul(part.load(elements.gradients + i), scale);
    const V first =
        hn::Add(hn::Mul(beta1, part.load(elements.first + i)), hn::Mul(rest1, gradient));
    const V second = hn::Add(hn::Mul(beta2, part.load(elements.second + i)),
                             hn::Mul(hn::Mul(rest2, gradient), gradient));
    part.store(first, elements.first + i);
    part.store(second, elements.second + i);
    part.store(direction(constants, part.load(elements.master + i), first, second), directions + i);
  });
}

void apply_lamb(const Elements& elements, const LambFactors& f, float rate) {
  const LambDirection constants = direction_of(f);
  const V rates = all(rate);
  move_all(Moments<2, 0>(), elements, [=](V, V weight, V first, V second) HWY_ATTR {
    return hn::Sub(weight, hn::Mul(rates, direction(constants, weight, first, second)));
  });
}

}  // namespace zeroth::optim::simd::HWY_NAMESPACE

HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace zeroth::optim::simd {

HWY_EXPORT(move_adamw);
HWY_EXPORT(move_adam_l2);
HWY_EXPORT(move_sgd);
HWY_EXPORT(move_sgd_momentum);
HWY_EXPORT(move_sgd_nesterov);
HWY_EXPORT(move_lion);
HWY_EXPORT(move_adagrad);
HWY_EXPORT(measure_lamb);
HWY_EXPORT(apply_lamb);

void adamw(const Elements& elements, const AdamFactors& factors) {
  HWY_DYNAMIC_DISPATCH(move_adamw)(elements, factors);
}

void adam(const Elements& elements, const AdamFactors& factors) {
  HWY_DYNAMIC_DISPATCH(move_adam_l2)(elements, factors);
}

void sgd(const Elements& elements, const SgdFactors& factors) {
  HWY_DYNAMIC_DISPATCH(move_sgd)(elements, factors);
}

void sgd_with_momentum(const Elements& elements, const SgdFactors& factors) {
  HWY_DYNAMIC_DISPATCH(move_sgd_momentum)(elements, factors);
}

void sgd_nesterov(const Elements& elements, const SgdFactors& factors) {
  HWY_DYNAMIC_DISPATCH(move_sgd_nesterov)(elements, factors);
}

void lion(const Elements& elements, const LionFactors& factors) {
  HWY_DYNAMIC_DISPATCH(move_lion)(elements, factors);
}

void adagrad(const Elements& elements, const AdagradFactors& factors) {
  HWY_DYNAMIC_DISPATCH(move_adagrad)(elements, factors);
}

void lamb_measure(const Elements& elements, const LambFactors& factors, float* directions) {
  HWY_DYNAMIC_DISPATCH(measure_lamb)(elements, factors, directions);
}

void lamb_apply(const Elements& elements, const LambFactors& factors, float rate) {
  HWY_DYNAMIC_DISPATCH(apply_lamb)(elements, factors, rate);
}

}  // namespace zeroth::optim::simd

#endif  // HWY_ONCE
