#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "formats/model_config.h"
#include "text/tokenizer.h"

namespace zeroth::inputs {

// A model's shape and its tokenizer, fitted to each other: where tokens are added, or an adapter
// brings rows for some, the embedding has a row for each.
struct ModelInputs {
  formats::ModelConfig model_config;
  std::int64_t stored_rows = 0;  // of the embedding in the model's files; new ones follow them
  text::Tokenizer tokenizer;
  std::filesystem::path tokenizer_folder;  // the model's, or that of an adapter with more tokens
  text::NewTokens new_tokens;              // beside those of that folder
  std::vector<std::string> remarks;        // what became of them, to be told

  // Rows that start at the mean, for tokens that this run adds.
  bool adds_rows = false;
};

// kConfig where tokens are added and resize_vocab is said to be false, though they need rows.
[[nodiscard]] ModelInputs open_model_inputs(const config::RunConfig& config);

// The config alone; the tokenizer is not opened where it cannot change anything. `file` is the
// config.json.
[[nodiscard]] formats::ModelConfig model_config_of(const config::RunConfig& config,
                                                   const std::filesystem::path& file);

}  // namespace zeroth::inputs
