#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// a [.., M, K] times b [.., K, N] -> [.., M, N], both of two dims or both of three with the same
// first dim. fp32 or bf16, accumulated in fp32 (fp64, for reference runs, is ATen's own product);
// transposed views are taken as they are, without a copy. The product is oneDNN's; a processor
// without a bf16 product widens the operands for the product only. No autograd.
[[nodiscard]] at::Tensor product(const at::Tensor& a,
                                 const at::Tensor& b,
                                 std::optional<at::ScalarType> out_dtype = std::nullopt);

}  // namespace zeroth::kernels
