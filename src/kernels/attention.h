#pragma once

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// softmax(scale * q k^T + mask) v with grouped queries: q [B, H, T, D], k and v [B, K, S, D], H a
// multiple of K; query head h reads key head h / (H / K). mask is additive fp32, broadcastable to
// [B, 1, T, S]. With a soft_cap c > 0 scores s become c * tanh(s / c) before the mask. Softmax in
// fp32. Differentiable in q, k and v. Returns [B, H, T, D].
[[nodiscard]] at::Tensor attention(const at::Tensor& q_BHTD,
                                   const at::Tensor& k_BKSD,
                                   const at::Tensor& v_BKSD,
                                   const at::Tensor& mask,
                                   double scale,
                                   double soft_cap = 0);

// 0 where query position t of the last `num_queries` may see key s, minus infinity elsewhere: [T,
// S]. It may see s <= t; with a window w > 0, t - w < s <= t.
[[nodiscard]] at::Tensor causal_mask(std::int64_t num_queries,
                                     std::int64_t num_keys,
                                     std::int64_t window = 0);

}  // namespace zeroth::kernels
