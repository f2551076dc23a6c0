#pragma once

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// cap * tanh(x / cap), element by element: nearly x where x is small, never beyond +-cap. Computed
// in fp32, rounded to x's type. Differentiable; keeps its result alone.
[[nodiscard]] at::Tensor soft_cap(const at::Tensor& x, double cap);

}  // namespace zeroth::kernels
