#pragma once

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// softmax(scale * q k^T + mask) v with grouped queries: q [B, H, T, D], k and v [B, K, S, D], H a
// multiple of K; query head h reads key head h / (H / K). mask is additive fp32, broadcastable to
// [B, 1, T, S]. Softmax in fp32. Differentiable in q, k and v. Returns [B, H, T, D].
[[nodiscard]] at::Tensor attention(const at::Tensor& q_BHTD,
                                   const at::Tensor& k_BKSD,
                                   const at::Tensor& v_BKSD,
                                   const at::Tensor& mask,
                                   double scale);

// 0 where query position t of the last `num_queries` may see key s (s <= t), minus infinity
// elsewhere: [T, S].
[[nodiscard]] at::Tensor causal_mask(std::int64_t num_queries, std::int64_t num_keys);

}  // namespace zeroth::kernels
