#pragma once

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

enum class GateActivation { kSilu, kGelu, kGeluTanh };

// activation(gate) * up, element by element. Differentiable. Shazeer, "GLU Variants Improve
// Transformer", 2020. kGeluTanh is the approximation of Hendrycks and Gimpel, "Gaussian Error
// Linear Units", 2016.
[[nodiscard]] at::Tensor gated(const at::Tensor& gate,
                               const at::Tensor& up,
                               GateActivation activation);

}  // namespace zeroth::kernels
