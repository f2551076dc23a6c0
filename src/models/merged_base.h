#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/model_config.h"
#include "formats/safetensors.h"
#include "models/merge_adapter.h"
#include "shapes/model_shape.h"

namespace zeroth::models {

// A base with adapters in it, made parameter by parameter when it is asked for.
class MergedBase {
 public:
  MergedBase(const formats::ModelConfig& config,
             std::shared_ptr<const formats::ModelWeights> weights,
             std::vector<AdapterToMerge> adapters);

  // The base's, but that a tied head is a tensor of its own where an adapter changes it or the
  // embedding: each side alone, as PEFT computes.
  [[nodiscard]] const formats::ModelConfig& config() const noexcept { return config_; }

  [[nodiscard]] const shapes::ModelShape& shape() const noexcept { return shape_; }

  // As the base stores it.
  [[nodiscard]] formats::DType stored_type(const std::string& parameter) const;
  // fp32, or as stored where no adapter changes it.
  [[nodiscard]] at::Tensor value(const std::string& parameter) const;
  [[nodiscard]] bool changes(const std::string& parameter) const;

 private:
  [[nodiscard]] const formats::TensorView& stored(const std::string& parameter) const;

  formats::ModelConfig config_;
  shapes::ModelShape shape_;
  std::shared_ptr<const formats::ModelWeights> weights_;
  std::vector<AdapterToMerge> adapters_;
};

}  // namespace zeroth::models
