#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/example.h"
#include "text/prompt_template.h"
#include "text/tokenizer.h"

// Files -> rows -> token rows. All errors are ErrorKind::kData unless said otherwise; every bad row of a file is
// listed with its number before anything long begins.
namespace zeroth::data {

enum class Stage { kPretrain, kSupervised };

struct LoadSettings {
  Stage stage = Stage::kSupervised;
  std::string prompt_template = "empty";
  std::int64_t cutoff_len = 2048;    // longest row, in tokens
  std::int64_t max_samples = -1;     // the first N rows of each file; -1 for all
  std::int64_t embedding_rows = 0;   // ids must lie below it (kModel error naming id, token and row)
  bool train_on_prompt = false;
  bool skip_bad_rows = false;        // drop and count bad rows rather than refuse them
  bool packing = true;               // pre-training only: concatenate documents, cut into rows of cutoff_len
};

// Reads JSON (array of objects), JSONL (also under a .json name) or, for pre-training, plain text (.txt) and JSON
// rows with a "text" column. Supervised rows are alpaca's: instruction, input, output, and optionally system and
// history. Rows keep the order of the files.
[[nodiscard]] Dataset load_examples(const std::vector<std::filesystem::path>& files,
                                    const text::Tokenizer& tokenizer, const LoadSettings& settings);

// Supervised rows as prompts to generate for. Rows without "output" get an empty label.
[[nodiscard]] std::vector<Prompt> load_prompts(const std::vector<std::filesystem::path>& files,
                                               const text::Tokenizer& tokenizer, const LoadSettings& settings);

// Moves `val_size` rows (a count if >= 1, else a share) out of `dataset`, chosen by `seed`; row ids are kept.
[[nodiscard]] Dataset split_validation(Dataset& dataset, double val_size, std::uint64_t seed);

}  // namespace zeroth::data
