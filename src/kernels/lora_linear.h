#pragma once

#include "kernels/packed_weight.h"

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// x [.., in] W^T + scale * z [.., in] A^T B^T -> [.., out], with W [out, in], A [rank, in] and
// B [out, rank] (Hu et al., "LoRA", 2021). z is what enters A: x after dropout, or undefined where
// it is x itself. The adapter's part is added where the product lies, in the same memory, forward
// and backward; what no gradient is asked for is not computed.
[[nodiscard]] at::Tensor lora_linear(const at::Tensor& x,
                                     const Weight& weight,
                                     const at::Tensor& z,
                                     const at::Tensor& a,
                                     const at::Tensor& b,
                                     double scale);

}  // namespace zeroth::kernels
