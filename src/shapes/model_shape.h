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

// A linear layer that LoRA may adapt.
struct LinearShape {
  std::string module;  // "model.layers.0.mlp.up_proj"
  std::int64_t in_features = 0;
  std::int64_t out_features = 0;
};

struct UnitShape {
  std::string name;  // "embedding", "layers.0", ..., "head"
  // Owned, in the fixed order of the flat layout.
  std::vector<ParameterShape> parameters{};
  // Those that LoRA's "all" adapts; the head's is not among them.
  std::vector<LinearShape> linears{};
  // Full names of parameters another unit owns (a tied head).
  std::vector<std::string> borrowed{};
};

struct ModelShape {
  std::vector<UnitShape> units;
  [[nodiscard]] std::int64_t num_parameters() const noexcept;
};

struct LoraSettings {
  std::int64_t rank = 8;
  double alpha = 16;
  double dropout = 0;
  // "all" or "all-linear" alone, or module names matched as PEFT does: equal, or ending in ".name".
  std::vector<std::string> targets{"all"};
};

// The linears that `targets` adapts, by unit, in the unit's order. A name that matches nothing is
// an Error of kConfig listing the module names there are; the embedding and the head are
// kNotSupported.
struct LoraTargets {
  std::vector<std::vector<LinearShape>> by_unit;  // as long as the model's list of units
  // As they should be saved: the names given, without repetition; "all" is spelt out in short
  // names, in the order of first appearance.
  std::vector<std::string> target_modules;
  std::vector<std::pair<std::string, std::int64_t>> counts;  // target module -> linears it matches
};

[[nodiscard]] LoraTargets lora_targets(const ModelShape& model,
                                       const std::vector<std::string>& targets);

// A[rank, in] then B[out, rank] of one adapted linear, named "<module>.lora_A.weight" and
// "<module>.lora_B.weight" (PEFT's names without its "base_model.model." prefix).
[[nodiscard]] std::vector<ParameterShape> lora_parameters(const LinearShape& linear,
                                                          std::int64_t rank);

}  // namespace zeroth::shapes
