#pragma once

#include <vector>

#include "formats/model_config.h"
#include "models/unit.h"

#include <ATen/core/Tensor.h>

namespace zeroth::models {

// Rotation speeds of the D/2 pairs, fp64, with the config's scaling applied: linear; Llama 3's and
// YaRN's (Peng et al., 2023) by wavelength. Dynamic scaling leaves rows that the model was made for
// as they are.
[[nodiscard]] at::Tensor rope_frequencies(const formats::RopeConfig& rope, std::int64_t head_dim);

// What all blocks of one kind share in one forward: angles and which keys are seen. Recomputed when
// the forward is another one.
class Positions {
 public:
  struct Shared {
    at::Tensor cos, sin;    // [B or 1, T, D/2], times the rope's attention factor
    at::Tensor first_keys;  // int32, [T] or [B, T]: see kernels::attention
  };

  Positions(std::vector<formats::LayerKind> kinds, std::int64_t head_dim);

  // Refreshes for the batch of `context`, with angles of `type`, in which rotations are computed;
  // the embedding calls it once per forward. kNotSupported
  // where a row is so long that dynamic scaling would begin: it follows the longest row seen, and
  // with it results would depend on the batch and on what ran before.
  void prepare(const ForwardContext& context, at::ScalarType type);

  [[nodiscard]] const Shared& of(std::size_t kind) const { return shared_[kind]; }

 private:
  std::vector<formats::LayerKind> kinds_;
  std::vector<at::Tensor> frequencies_;
  std::vector<Shared> shared_;
};

}  // namespace zeroth::models
