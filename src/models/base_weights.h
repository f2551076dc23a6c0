#pragma once

#include <memory>
#include <string>
#include <vector>

#include "formats/model_config.h"
#include "formats/safetensors.h"
#include "models/merge_adapter.h"
#include "shapes/model_shape.h"

namespace zeroth::models {

// The weights that a run starts from: a model's files, with rows for tokens that were added and
// with adapters merged in. Each is made when it is asked for.
class BaseWeights {
 public:
  // `config` is the run's: its vocab_size may be larger than what the files hold, and the rows that
  // are missing then start at the mean of those that are there (as Hewitt, "Initializing New Word
  // Embeddings for Pretrained Language Models", 2021, but without noise).
  BaseWeights(const formats::ModelConfig& config,
              std::shared_ptr<const formats::ModelWeights> files,
              std::vector<AdapterToMerge> adapters);

  // The run's, but that a tied head is a tensor of its own where an adapter changes it or the
  // embedding: each side alone, as PEFT computes.
  [[nodiscard]] const formats::ModelConfig& config() const noexcept { return config_; }

  // As the files store it.
  [[nodiscard]] formats::DType stored_type(const std::string& parameter) const;
  // fp32 where an adapter changes it. Otherwise as stored: in the file's mapping, or a copy with
  // more rows.
  [[nodiscard]] at::Tensor value(const std::string& parameter) const;

 private:
  [[nodiscard]] const formats::TensorView& stored(const std::string& parameter) const;
  [[nodiscard]] bool changes(const std::string& parameter) const;

  formats::ModelConfig config_;
  std::shared_ptr<const formats::ModelWeights> files_;
  std::vector<AdapterToMerge> adapters_;
};

}  // namespace zeroth::models
