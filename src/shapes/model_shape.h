#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/model_config.h"

// A family as units of names and shapes, without weights and without LibTorch: what the engine
// shards, what `plan` adds up, what a model folder must hold.
namespace zeroth::shapes {

// What a parameter of a model without weights starts from.
enum class FirstValues { kRandom, kZero, kOne };

struct ParameterShape {
  std::string name;  // full Hugging Face name, e.g. "model.layers.0.mlp.up_proj.weight"
  std::vector<std::int64_t> shape;  // row-major; a linear's is [out, in]
  bool decays = true;               // false for norms and biases (Transformers' rule)
  FirstValues first = FirstValues::kRandom;
  [[nodiscard]] std::int64_t numel() const noexcept;
};

// A linear layer that LoRA may adapt, or the embedding, which takes one of in_features rows.
struct LinearShape {
  std::string module;  // "model.layers.0.mlp.up_proj"
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;
  bool is_embedding = false;
};

struct UnitShape {
  std::string name;  // "embedding", "layers.0", ..., "head"
  // Owned, in the fixed order of the flat layout.
  std::vector<ParameterShape> parameters{};
  // Those that LoRA's "all" adapts; the head's is not among them.
  std::vector<LinearShape> linears{};
  // The embedding or the head, which LoRA adapts where its settings name it.
  std::vector<LinearShape> ends{};
  // Full names of parameters another unit owns (a tied head).
  std::vector<std::string> borrowed{};
};

struct ModelShape {
  std::vector<UnitShape> units;
  [[nodiscard]] std::int64_t num_parameters() const noexcept;
};

}  // namespace zeroth::shapes
