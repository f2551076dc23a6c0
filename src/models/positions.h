#pragma once

#include "formats/model_config.h"
#include "models/unit.h"

#include <ATen/core/Tensor.h>

namespace zeroth::models {

// Rotation speeds of the D/2 pairs, fp32, with the config's scaling applied (linear; Llama 3's by
// wavelength).
[[nodiscard]] at::Tensor rope_frequencies(const formats::RopeConfig& rope, std::int64_t head_dim);

// What all blocks of one forward share: angles and the mask. Recomputed when the forward is another
// one.
class Positions {
 public:
  Positions(const formats::RopeConfig& rope, std::int64_t head_dim);

  // Refreshes for the batch of `context`; the embedding calls it once per forward.
  void prepare(const ForwardContext& context);

  [[nodiscard]] const at::Tensor& cos() const noexcept { return cos_; }  // [B or 1, T, D/2]

  [[nodiscard]] const at::Tensor& sin() const noexcept { return sin_; }

  [[nodiscard]] const at::Tensor& mask() const noexcept {
    return mask_;
  }  // additive, [T, S] or [B, 1, T, S]

 private:
  at::Tensor frequencies_;
  at::Tensor cos_, sin_, mask_;
};

}  // namespace zeroth::models
