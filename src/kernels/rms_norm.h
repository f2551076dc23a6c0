#pragma once

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

enum class NormWeight { kPlain, kPlusOne };

// y = w * x / sqrt(mean(x^2) + epsilon) over the last dim, computed in fp32 and rounded to x's type
// before the multiplication by w, as Transformers' LlamaRMSNorm does; with kPlusOne times 1 + w,
// and rounded after it, as its GemmaRMSNorm does. x [.., H], weight [H]. Differentiable. Zhang and
// Sennrich, "Root Mean Square Layer Normalization", 2019.
[[nodiscard]] at::Tensor rms_norm(const at::Tensor& x,
                                  const at::Tensor& weight,
                                  double epsilon,
                                  NormWeight form = NormWeight::kPlain);

struct SumAndNorm {
  at::Tensor sum;
  at::Tensor normed;
};

// x + added, rounded to their type, and the norm of that: one walk over memory in each direction
// where the fast version computes. x and added [.., H] of one shape. Differentiable in all three.
[[nodiscard]] SumAndNorm add_rms_norm(const at::Tensor& x,
                                      const at::Tensor& added,
                                      const at::Tensor& weight,
                                      double epsilon,
                                      NormWeight form = NormWeight::kPlain);

}  // namespace zeroth::kernels
