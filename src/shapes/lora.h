#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "formats/adapter.h"
#include "shapes/model_shape.h"

// What an adapter is on a model: which modules it adapts and how, which weights of the base train
// beside it, and what its file holds. PEFT's rules.
namespace zeroth::shapes {

using LoraSettings = formats::AdapterConfig;

struct AdaptedModule : LinearShape {
  std::int64_t rank = 0;
  double scale = 0;  // of B A
  bool dora = false;
};

// A tensor of the adapter's file.
struct SavedTensor {
  std::string parameter;  // the model's, whose value it is
  std::string key;        // its name in the file
  std::vector<std::int64_t> shape;
  bool optional = false;  // a file without it is whole: the base's value stands
};

struct LoraTargets {
  std::vector<std::vector<AdaptedModule>> by_unit{};  // as long as the model's list of units
  // As they should be saved: the names given, without repetition; "all" is spelt out in short
  // names, in the order of first appearance. Empty with a pattern.
  std::vector<std::string> target_modules{};
  // Target -> modules it matches; of a pattern by short names.
  std::vector<std::pair<std::string, std::int64_t>> counts{};
  std::set<std::string> trained{};  // the base's own parameters that train
  bool own_head = false;            // a tied head that is trained, or must stay, becomes a matrix
  std::vector<SavedTensor> saved{};
  std::vector<std::string> idle{};  // settings that change nothing on this model, a text each

  [[nodiscard]] const AdaptedModule* find(const std::string& module) const;
};

// A target that matches nothing, and no match at all, is an Error of kConfig listing the module
// names there are.
[[nodiscard]] LoraTargets lora_targets(const ModelShape& model, const LoraSettings& settings);

// A[rank, in] then B[out, rank] of one adapted linear, named "<module>.lora_A.weight" and
// "<module>.lora_B.weight" (PEFT's names without its "base_model.model." prefix), then DoRA's
// "<module>.lora_magnitude_vector" [out]. An embedding's are "<module>.lora_embedding_A" and
// "..._B".
[[nodiscard]] std::vector<ParameterShape> lora_parameters(const AdaptedModule& module);

// The model with a head of its own in place of a tied one.
[[nodiscard]] ModelShape with_own_head(ModelShape model);

}  // namespace zeroth::shapes
