#pragma once

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// Rows of `weight` [V, C] by number: ids [..] int64 -> [.., C]. Differentiable in weight: the
// gradients of one token's places are added in fp32, in the order of the places, and rounded once,
// so the bits do not depend on threads.
[[nodiscard]] at::Tensor embedding(const at::Tensor& weight_VC, const at::Tensor& ids);

}  // namespace zeroth::kernels
