#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "data/example.h"
#include "data/row_schema.h"
#include "data/source.h"
#include "data/trains.h"
#include "text/prompt_template.h"
#include "text/tokenizer.h"

// Files -> rows -> token rows. All errors are ErrorKind::kData unless said otherwise; every bad row
// of a file is listed with its number before anything long begins.
namespace zeroth::data {

enum class Stage { kPretrain, kSupervised };

struct LoadSettings {
  Stage stage = Stage::kSupervised;
  std::string prompt_template = "empty";
  std::int64_t cutoff_len = 2048;   // longest row, in tokens
  std::int64_t max_samples = -1;    // the first N rows of each file; -1 for all
  std::int64_t embedding_rows = 0;  // ids must lie below it (kModel error naming id, token and row)
  RowColumns columns;               // of rows whose source names none
  std::string default_system;       // of rows without one; empty: the template's
  Trains trains = Trains::kAnswers;
  bool skip_bad_rows = false;  // drop and count bad rows rather than refuse them
  bool packing = true;  // pre-training only: concatenate documents, cut into rows of cutoff_len
};

// Reads JSON (array of objects), JSONL (also under a .json name) or, for pre-training, plain text
// (.txt) and JSON rows with a "text" column. Supervised rows are alpaca's, ShareGPT's, OpenAI's or
// of the columns that are named (rows.h); all answers are trained. Rows keep the order of the
// files. Longer rows are cut turn by turn as LLaMA-Factory does (data/truncation.h); the end token
// stays only if it fits. A pre-training document is a whole .txt file or one row's text, between
// the tokenizer's prefix and the end token. With packing all of them are joined and cut into rows
// of cutoff_len tokens, the last one shorter (nothing is lost but a single left-over token);
// without it each is a row of its own, cut to cutoff_len.
[[nodiscard]] Dataset load_examples(const Sources& sources,
                                    const text::Tokenizer& tokenizer,
                                    const LoadSettings& settings);

// Supervised rows as prompts to generate for. Rows without "output" get an empty label. A prompt
// that is empty or longer than cutoff_len is a bad row: cutting it would ask another question.
// `counts`, if given, receives what happened to the rows.
[[nodiscard]] std::vector<Prompt> load_prompts(const Sources& sources,
                                               const text::Tokenizer& tokenizer,
                                               const LoadSettings& settings,
                                               RowCounts* counts = nullptr);

// Moves `val_size` rows (a count if >= 1, else a share, rounded up) out of `dataset`, chosen by
// `seed`; row ids and order are kept, and the fingerprint stays that of the whole. kData where no
// row would be left.
[[nodiscard]] Dataset split_validation(Dataset& dataset, double val_size, std::uint64_t seed);

}  // namespace zeroth::data
