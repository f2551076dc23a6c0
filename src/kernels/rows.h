#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "kernels/parallel.h"
#include "kernels/simd/storage.h"

#include <ATen/core/Tensor.h>

// What kernels share: how their tensors lie and how rows go to threads.
namespace zeroth::kernels {

[[nodiscard]] inline simd::Storage storage_of(const at::Tensor& x) {
  switch (x.scalar_type()) {
    case at::kBFloat16:
      return simd::Storage::kBf16;
    case at::kHalf:
      return simd::Storage::kFp16;
    default:
      ZEROTH_CHECK(x.scalar_type() == at::kFloat, "vector code for another type of element");
      return simd::Storage::kFp32;
  }
}

// [.., C] as a matrix, and a matrix's rows in the shape of another tensor but for the last dim.
[[nodiscard]] inline at::Tensor as_rows(const at::Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

[[nodiscard]] inline at::Tensor with_last_dim(const at::Tensor& rows, const at::Tensor& like) {
  std::vector<std::int64_t> shape = like.sizes().vec();
  shape.back() = rows.size(-1);
  return rows.view(shape);
}

// Calls visit(first, last) for pieces of `rows`, on as many threads as the work of `columns`
// numbers a row deserves.
template <typename Visit>
void for_rows(std::int64_t rows, std::int64_t columns, const Visit& visit) {
  constexpr std::int64_t kNumbersPerPiece = 16384;
  const std::int64_t grain =
      std::max<std::int64_t>(1, kNumbersPerPiece / std::max<std::int64_t>(1, columns));
  for_each_range(rows, grain, [&](std::int64_t first, std::int64_t last) {
    visit(static_cast<std::size_t>(first), static_cast<std::size_t>(last));
  });
}

}  // namespace zeroth::kernels
