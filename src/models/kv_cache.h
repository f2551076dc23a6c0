#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

namespace zeroth::models {

// Keys and values of the positions generated so far, per layer, for one batch. Room grows by
// doubling.
class KvCache {
 public:
  explicit KvCache(std::int64_t num_layers) : layers_(static_cast<std::size_t>(num_layers)) {}

  // Positions every layer holds; moves on when a forward is finished (see advance).
  [[nodiscard]] std::int64_t length() const noexcept { return length_; }

  // Appends k and v [B, K, T, D] behind position length() of `layer` and gives views of all
  // positions so far.
  [[nodiscard]] std::pair<at::Tensor, at::Tensor> append(std::int64_t layer,
                                                         const at::Tensor& k,
                                                         const at::Tensor& v);

  void advance(std::int64_t positions) noexcept { length_ += positions; }

  // Keeps only the given rows of the batch, in that order.
  void select_rows(const at::Tensor& rows);

 private:
  struct Layer {
    at::Tensor keys, values;  // [B, K, capacity, D]
  };

  std::vector<Layer> layers_;
  std::int64_t length_ = 0;
};

}  // namespace zeroth::models
