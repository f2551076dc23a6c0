#pragma once

#include <cstdint>
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

// A matrix that lies anywhere: strides in elements, one of them 1.
struct Matrix {
  void* data;
  std::int64_t rows, columns;
  std::int64_t row_stride, column_stride;
  at::ScalarType dtype;
};

// The same for matrices, on all threads that the calling region has; only of types of which
// has_product() is true. Nothing is allocated that grows with them, but for what oneDNN packs.
void product_into(const Matrix& out, const Matrix& a, const Matrix& b, Accumulate mode);

// Whether this processor has products of this type.
[[nodiscard]] bool has_product(at::ScalarType dtype);

}  // namespace zeroth::kernels
