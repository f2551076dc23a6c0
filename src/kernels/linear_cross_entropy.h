#pragma once

#include "kernels/packed_weight.h"

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// cross_entropy_sum(linear(hidden, weight), targets, soft_cap) without ever holding all logits:
// hidden [N, C], weight [V, C], targets [N] int64 -> a scalar tensor in fp32. The fast version
// takes rows in chunks (arithmetic/loss_chunks.h) and computes the gradients of a chunk's rows
// while its logits are there; backward only scales them. Their sum over chunks is in fp32.
// Differentiable in hidden and weight; what needs no gradient costs none.
[[nodiscard]] at::Tensor linear_cross_entropy(const at::Tensor& hidden_NC,
                                              const Weight& weight_VC,
                                              const at::Tensor& targets_N,
                                              double soft_cap = 0);

}  // namespace zeroth::kernels
