#pragma once

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// The type that sums and exponentials are computed in: fp32, or fp64 where the operands are fp64
// already (a reference run).
[[nodiscard]] inline at::ScalarType wide_type(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

}  // namespace zeroth::kernels
