#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "text/prompt_template.h"

// Alpaca rows: instruction, input, output, and optionally system and history.
namespace zeroth::data {

struct AlpacaRow {
  std::string system;
  std::vector<text::Turn> turns;  // history first; the last one holds the row's question and answer
};

enum class Answer { kRequired, kOptional };

// Reads one row. Whatever is wrong with it is said in `problem`, empty for a good row. Columns of
// other names are left alone, unless a name looks like a misspelt column that is missing.
[[nodiscard]] AlpacaRow parse_alpaca_row(const Json& value, Answer answer, std::string& problem);

// For a first row that is of another known format: what it is and what to do; else empty.
[[nodiscard]] std::string foreign_to_alpaca(const Json& first_row);

// The same for rows that should have a "text" column.
[[nodiscard]] std::string foreign_to_pretraining(const Json& first_row);

// The "text" of a row; `problem` says why there is none.
[[nodiscard]] std::string parse_text_row(const Json& value, std::string& problem);

}  // namespace zeroth::data
