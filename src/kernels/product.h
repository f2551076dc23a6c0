#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// a [.., M, K] times b [.., K, N] -> [.., M, N], both of two dims or both of three with the same
// first dim. fp32, bf16 or fp16, accumulated in fp32 (fp64, for reference runs, is ATen's own
// product); transposed views are taken as they are, without a copy. The product is oneDNN's; where
// it has no bf16 or fp16 product for this processor, the operands are widened for the product only.
// No autograd.
[[nodiscard]] at::Tensor product(const at::Tensor& a,
                                 const at::Tensor& b,
                                 std::optional<at::ScalarType> out_dtype = std::nullopt);

enum class Accumulate { kOverwrite, kAdd };

// The same into `out`, whose type and strides decide; with kAdd added to what is there, in fp32
// where out is fp32.
void product_into(const at::Tensor& out,
                  const at::Tensor& a,
                  const at::Tensor& b,
                  Accumulate mode = Accumulate::kOverwrite);

}  // namespace zeroth::kernels
