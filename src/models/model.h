#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/model_config.h"
#include "formats/safetensors.h"
#include "models/families.h"
#include "models/merge_adapter.h"
#include "models/unit.h"
#include "shapes/freeze.h"
#include "shapes/lora.h"

namespace zeroth::models {

struct ModelOptions {
  at::ScalarType dtype = at::kFloat;             // in which new weights are held that do not train
  std::optional<shapes::LoraSettings> lora;      // adapters; the rest of the base is then frozen
  std::optional<shapes::FreezeSettings> freeze;  // which of the base trains, without adapters
  std::vector<AdapterToMerge> merge;             // goes into the base first, in this order
  bool trainable = true;    // false: nothing is trained (evaluation, generation)
  std::uint64_t seed = 42;  // of new weights (LoRA's A, random models)
  FamilyTables families{};  // where the config's family is looked up
};

// A model of any family as a list of units: embedding, blocks, head. Weights are as constructed
// until they are loaded.
struct Model {
  formats::ModelConfig config;
  shapes::ModelShape shape;
  shapes::LoraTargets lora;  // empty without adapters
  UnitList units;

  [[nodiscard]] Parameter* find(const std::string& name);  // nullptr if there is none
  [[nodiscard]] const Parameter* find(const std::string& name) const;
  [[nodiscard]] std::int64_t num_parameters() const;
  [[nodiscard]] std::int64_t num_trainable() const;
};

// Units whose base weights stay in the files of `weights` (checked by shapes::check_weights) until
// an engine takes them, or Parameter::materialize() does; those that BaseWeights makes (an adapter
// is merged into them, or `config` has more tokens than the files) are held until then. Adapters
// start as PEFT starts them.
[[nodiscard]] Model load_model(const formats::ModelConfig& config,
                               const std::shared_ptr<const formats::ModelWeights>& weights,
                               const ModelOptions& options);

// Random weights as Transformers initialises them: normal with the config's initializer_range,
// norms 1 (Gemma's 0), biases 0. Each tensor depends on the seed and its name alone.
[[nodiscard]] Model random_model(const formats::ModelConfig& config, const ModelOptions& options);

// Overwrites the adapters of `model`, and the weights that its file holds besides, with those of a
// PEFT file that shapes::check_adapter has seen.
void load_adapter(Model& model, const formats::TensorFile& file);

// LoRA+ (Hayou et al., 2024) in LLaMA-Factory's groups: B, biases and magnitudes learn at `ratio`
// times the rate, B of an adapted embedding at `embedding_factor` times it.
void set_loraplus_rates(Model& model, double ratio, double embedding_factor);

}  // namespace zeroth::models
