#pragma once

#include <cstddef>

#include "kernels/simd/storage.h"

// How each optimizer moves neighbouring elements, in vectors. Every element is moved by itself, by
// products, sums, quotients and roots that IEEE 754 rounds in one way: its bits depend neither on
// the kind of processor nor on how a shard is cut into pieces.
namespace zeroth::optim::simd {

using kernels::simd::Storage;

// `count` neighbours of a shard; an optimizer with fewer moments leaves the later pointers alone.
struct Elements {
  std::size_t count = 0;
  float* master = nullptr;
  const float* gradients = nullptr;
  float* first = nullptr;
  float* second = nullptr;
  // Gets the new master, rounded to nearest even, in 16 bits each; nullptr: nobody wants it.
  void* rounded = nullptr;
  Storage rounded_type = Storage::kBf16;
  // Past the caches, for shards that outgrow them: only what is written and not read before.
  bool streams = false;
};

// The constants of one segment's update, in the precision of the arithmetic. rest1 is 1 - beta1:
// taken in fp32 it would be off by 1e-5 where beta is near 1.
struct AdamFactors {
  float beta2, rest1, rest2, keep, gradient_decay, step_size, inverse_root_correction, epsilon,
      gradient_scale;
};

struct SgdFactors {
  float rate, decay, gradient_scale, momentum, addition;
};

struct LionFactors {
  float beta1, beta2, rest1, rest2, keep, rate, gradient_scale;
};

struct AdagradFactors {
  float rate, decay, epsilon, gradient_scale;
};

struct LambFactors {
  float beta1, beta2, rest1, rest2, inverse_correction, inverse_root_correction, epsilon, decay,
      gradient_scale;
};

void adamw(const Elements& elements, const AdamFactors& factors);
// With weight decay added to the gradient.
void adam(const Elements& elements, const AdamFactors& factors);

void sgd(const Elements& elements, const SgdFactors& factors);
void sgd_with_momentum(const Elements& elements, const SgdFactors& factors);
void sgd_nesterov(const Elements& elements, const SgdFactors& factors);

void lion(const Elements& elements, const LionFactors& factors);

void adagrad(const Elements& elements, const AdagradFactors& factors);

// Moves the moments alone; `directions` gets where each weight would go, before learning rate and
// ratio.
void lamb_measure(const Elements& elements, const LambFactors& factors, float* directions);
// The weights, by the moments that are there.
void lamb_apply(const Elements& elements, const LambFactors& factors, float rate);

}  // namespace zeroth::optim::simd
