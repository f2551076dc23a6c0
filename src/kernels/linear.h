#pragma once

#include "kernels/packed_weight.h"

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// y = x W^T (+ bias): x [.., in], weight [out, in], bias [out] or undefined; y [.., out].
// Differentiable; a frozen weight costs no gradient product and does not keep x alive.
[[nodiscard]] at::Tensor linear(const at::Tensor& x,
                                const Weight& weight,
                                const at::Tensor& bias = {});

}  // namespace zeroth::kernels
