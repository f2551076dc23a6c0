#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/adapter.h"
#include "formats/model_config.h"
#include "formats/safetensors.h"
#include "models/families.h"
#include "models/unit.h"
#include "shapes/model_shape.h"

namespace zeroth::models {

struct ModelOptions {
  at::ScalarType dtype = at::kFloat;         // in which new weights are held that do not train
  std::optional<shapes::LoraSettings> lora;  // adapters; the base is then frozen
  bool trainable = true;                     // false: nothing is trained (evaluation, generation)
  std::uint64_t seed = 42;                   // of new weights (LoRA's A, random models)
  FamilyTables families{};                   // where the config's family is looked up
};

// A model of any family as a list of units: embedding, blocks, head. Weights are as constructed
// until they are loaded.
struct Model {
  formats::ModelConfig config;
  shapes::ModelShape shape;
  shapes::LoraTargets lora;  // empty without adapters
  UnitList units;

  [[nodiscard]] Parameter* find(const std::string& name);  // nullptr if there is none
  [[nodiscard]] std::int64_t num_parameters() const;
  [[nodiscard]] std::int64_t num_trainable() const;
};

// Units whose base weights stay in the files of `weights` (checked by shapes::check_weights) until
// an engine takes them, or Parameter::materialize() does. LoRA's A is uniform in +-1/sqrt(in), B
// zero, as PEFT starts them.
[[nodiscard]] Model load_model(const formats::ModelConfig& config,
                               const std::shared_ptr<const formats::ModelWeights>& weights,
                               const ModelOptions& options);

// Random weights as Transformers initialises them: normal with the config's initializer_range,
// norms 1 (Gemma's 0), biases 0. Each tensor depends on the seed and its name alone.
[[nodiscard]] Model random_model(const formats::ModelConfig& config, const ModelOptions& options);

// Overwrites the adapters of `model` with those of a PEFT file.
void load_adapter(Model& model, const formats::SafetensorsFile& file);

}  // namespace zeroth::models
