#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "text/tokenizer.h"

namespace zeroth::data {

inline constexpr text::TokenId kIgnoreLabel = -100;  // a position whose prediction is not trained

// One row as the model sees it. labels[i] is the id that stands at i or kIgnoreLabel; the loss
// shifts, so labels[0] is never a target.
struct Example {
  std::int64_t row =
      0;  // position among the kept rows of its dataset: the row's identity everywhere
  std::vector<text::TokenId> input_ids;
  std::vector<text::TokenId> labels;
  // Where each of the rows begins that it was joined from (join_rows.h); empty: it is one row.
  std::vector<std::int64_t> begins{};

  // Labels that are predicted: those at positions 1.. that are not ignored.
  [[nodiscard]] std::int64_t num_targets() const noexcept;
};

// One row to generate for.
struct Prompt {
  std::int64_t row = 0;
  std::string prompt;              // the prompt's text, decoded with special tokens
  std::vector<text::TokenId> ids;  // ends where the answer begins
  std::string label;               // the expected answer, as the data file has it
};

// What happened to the rows of the files read. In pre-training they are documents: with packing, as
// many examples as the text fills.
struct RowCounts {
  std::int64_t read = 0;
  std::int64_t kept = 0;
  std::int64_t truncated = 0;           // kept, but cut to cutoff_len
  std::int64_t tokens_cut = 0;          // by truncation
  std::int64_t dropped_bad = 0;         // not usable, dropped because --skip_bad_rows
  std::int64_t dropped_empty = 0;       // an empty answer: nothing to learn
  std::int64_t dropped_unlabelled = 0;  // truncation left no target token
  std::int64_t bos_in_text =
      0;  // kept rows whose own text spells the BOS token: probably a second one
};

struct Dataset {
  std::vector<Example> examples;
  RowCounts counts;
  std::int64_t num_tokens = 0;
  std::int64_t num_targets = 0;
  // Of the data that the rows came from: ids, labels and begins of all examples in order.
  std::uint64_t fingerprint = 0;

  [[nodiscard]] std::int64_t num_rows() const noexcept;  // before they were joined
};

}  // namespace zeroth::data
