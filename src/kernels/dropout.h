#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

namespace zeroth::kernels {

// Decides which elements are dropped: the same for any rank, micro-step or padding.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t module = 0;        // one number per place in the model
  std::int64_t update = 0;         // counted from 0
  std::vector<std::int64_t> rows;  // the identity of each row of the batch
};

// x [B, T, C] with elements zeroed with the given probability and the rest scaled by 1 / (1 -
// probability). Element (t, c) of a row is decided by (seed, module, update, row, t * C + c) alone.
// Differentiable.
[[nodiscard]] at::Tensor dropout(const at::Tensor& x_BTC,
                                 double probability,
                                 const DropoutKey& key);

}  // namespace zeroth::kernels
