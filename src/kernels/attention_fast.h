#pragma once

#include "kernels/attention_blocks.h"

// Attention by blocks of queries: a block's scores are computed for the keys that it can see, a
// chunk of keys after the other, and again in the backward. Nothing grows with queries times keys.
namespace zeroth::kernels {

struct AttentionResult {
  at::Tensor out;       // [B, H, T, D], laid out as [B, T, H, D]
  at::Tensor log_sums;  // fp32 [B, K, T, H / K]: the logarithm of each query's sum of e^score
};

struct AttentionGradients {
  at::Tensor q, k, v;  // the inputs' shapes, laid out as [B, T, H, D] and [B, S, K, D]
};

[[nodiscard]] AttentionResult attention_by_blocks(const AttentionInputs& inputs);

// The same to the bit for the same number of threads.
[[nodiscard]] AttentionGradients attention_gradients(const AttentionInputs& inputs,
                                                     const AttentionResult& result,
                                                     const at::Tensor& grad_out);

}  // namespace zeroth::kernels
