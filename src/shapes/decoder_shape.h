#pragma once

#include "shapes/model_shape.h"

namespace zeroth::shapes {

// Embedding, blocks of attention and MLP, head: the units of every family that the features of
// ModelConfig describe.
[[nodiscard]] ModelShape decoder_shape(const formats::ModelConfig& config);

// The parts, for a family whose units differ in one of them.
[[nodiscard]] UnitShape embedding_shape(const formats::ModelConfig& config);
[[nodiscard]] UnitShape head_shape(const formats::ModelConfig& config);
// Adds a norm; the linears of attention with their norms of heads; the linears of the MLP.
void add_norm(UnitShape& unit,
              const std::string& module,
              std::int64_t size,
              const formats::ModelConfig& config);
void add_attention(UnitShape& unit, const std::string& module, const formats::ModelConfig& config);
void add_mlp(UnitShape& unit, const std::string& module, const formats::ModelConfig& config);

}  // namespace zeroth::shapes
