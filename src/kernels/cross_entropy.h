#pragma once

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// Sum over rows of -log softmax(logits)[target], in fp32: a scalar tensor. logits [N, V], targets
// [N] int64. With a soft_cap c > 0 logits x become c * tanh(x / c) first. Differentiable in logits.
[[nodiscard]] at::Tensor cross_entropy_sum(const at::Tensor& logits_NV,
                                           const at::Tensor& targets_N,
                                           double soft_cap = 0);

}  // namespace zeroth::kernels
