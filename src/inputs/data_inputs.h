#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "data/load.h"
#include "inputs/model_inputs.h"

// The files that a run names, opened: what the front looks into before a run, and a worker reads.
namespace zeroth::inputs {

// What tokens are made with.
struct DataInputs : ModelInputs {
  text::TokenId pad_id = 0;
  data::LoadSettings load;
};

[[nodiscard]] DataInputs open_data_inputs(const config::RunConfig& config);

// Files, or data sets of the dataset_info.json beside which a name stands that is no file: where
// --dataset_dir was not given, also those of the folder `data` (LLaMA-Factory's default).
[[nodiscard]] data::Sources sources_of(const std::vector<std::string>& names);

// Rows to train on and to evaluate on while training.
struct TrainingData {
  data::Dataset train;
  std::optional<data::Dataset> validation;
};

[[nodiscard]] TrainingData load_training_data(const config::RunConfig& config,
                                              const DataInputs& inputs);

// How many rows would be trained, where the model's and data files are there and not larger than
// `most_bytes` in all; nullopt otherwise. Errors as of reading them.
[[nodiscard]] std::optional<std::int64_t> count_training_rows(const config::RunConfig& config,
                                                              std::uintmax_t most_bytes);

}  // namespace zeroth::inputs
