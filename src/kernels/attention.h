#pragma once

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// softmax(scale * q k^T) v with grouped queries: q [B, H, T, D], k and v [B, K, S, D], H a multiple
// of K; query head h reads key head h / (H / K). The queries are the last T of the S positions:
// query t sees the keys from first_keys[t] up to its own, S - T + t. first_keys is int32, [T] for
// all rows or [B, T], each from 0 to the query's own key: every query sees itself. With a soft_cap
// c > 0 scores s become c * tanh(s / c) before the softmax, which is in fp32. Differentiable in q,
// k and v. Returns [B, H, T, D].
//
// Memory beyond inputs and results: bounded by blocks of queries times chunks of keys for each
// thread; the reference version has T x S scores for each head.
[[nodiscard]] at::Tensor attention(const at::Tensor& q_BHTD,
                                   const at::Tensor& k_BKSD,
                                   const at::Tensor& v_BKSD,
                                   const at::Tensor& first_keys,
                                   double scale,
                                   double soft_cap = 0);

// The first keys of the last `num_queries` of `num_keys` positions: 0, or with a window w > 0 the
// one that is w - 1 before the query's own. int32 [T].
[[nodiscard]] at::Tensor causal_first_keys(std::int64_t num_queries,
                                           std::int64_t num_keys,
                                           std::int64_t window = 0);

}  // namespace zeroth::kernels
