#pragma once

#include "models/model.h"

namespace zeroth::models {

// Logits [B, T, V] of `ids` [B, T] in fp32, without an engine: each unit's weights come from their
// file for its forward and go again, so that one unit is in memory at a time.
[[nodiscard]] at::Tensor logits_by_unit(Model& model, const at::Tensor& ids);

}  // namespace zeroth::models
