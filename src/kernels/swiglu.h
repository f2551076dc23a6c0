#pragma once

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// silu(gate) * up, element by element. Differentiable. Shazeer, "GLU Variants Improve Transformer",
// 2020.
[[nodiscard]] at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);

}  // namespace zeroth::kernels
