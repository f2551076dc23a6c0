#pragma once

#include <ATen/core/Tensor.h>

// Losses of rows of logits by vector code, for the operations that end in a loss. No autograd.
// logits [N, V] in one piece of a type that is_fast takes, targets [N] int64 in one piece; with a
// soft_cap c > 0 logits x stand for c * tanh(x / c).
namespace zeroth::kernels {

struct RowLosses {
  at::Tensor losses;  // [N] fp32
  at::Tensor sums;    // [N, 2] fp32: what row_gradients needs
};

[[nodiscard]] RowLosses row_losses(const at::Tensor& logits_NV,
                                   const at::Tensor& targets_N,
                                   double soft_cap);

// scale times the gradient of the losses' sum, into `out` [N, V], which may be the logits.
void row_gradients(const at::Tensor& logits_NV,
                   const at::Tensor& targets_N,
                   const at::Tensor& sums,
                   double soft_cap,
                   float scale,
                   const at::Tensor& out);

// In fp64, one after the other; a scalar tensor in fp32.
[[nodiscard]] at::Tensor sum_of_losses(const at::Tensor& losses_N);

}  // namespace zeroth::kernels
