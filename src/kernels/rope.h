#pragma once

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// Rotates pairs (i, i + D/2) of each head by its position's angle ("rotate half", as Hugging Face
// stores q and k). x [B, T, H, D]; cos and sin [B or 1, T, D/2]. Differentiable in x;
// computed in fp32, rounded to x's type. The fast version's result lies as [B, H, T, D] does, which
// is how attention reads it. Su et al., "RoFormer", 2021.
[[nodiscard]] at::Tensor rope(const at::Tensor& x_BTHD,
                              const at::Tensor& cos,
                              const at::Tensor& sin);

}  // namespace zeroth::kernels
