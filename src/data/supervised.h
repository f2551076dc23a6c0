#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/bad_rows.h"
#include "data/conversation.h"
#include "data/example.h"
#include "data/load.h"

namespace zeroth::data {

struct SupervisedRow {
  RowPlace place;
  Conversation row;
};

struct SupervisedRows {
  std::vector<SupervisedRow> rows;
  RowCounts counts;  // of reading: read, dropped_bad, dropped_empty
};

// The usable rows of all files, in order. Bad rows are refused, all in one error, or dropped
// and counted. With a required answer, rows whose answer is blank are dropped and counted.
[[nodiscard]] SupervisedRows read_supervised_rows(const Sources& sources,
                                                  const LoadSettings& settings,
                                                  Answer answer);

[[nodiscard]] Dataset load_supervised(const Sources& sources,
                                      const text::Tokenizer& tokenizer,
                                      const LoadSettings& settings);

// True where nothing but white space (Unicode's) stands in `text`.
[[nodiscard]] bool is_blank(std::string_view text);

// The BOS token as text where the tokenizer writes it before a row, else empty: a row that spells
// it has it twice (case D14).
[[nodiscard]] std::string written_bos(const text::Tokenizer& tokenizer);
[[nodiscard]] bool spells(std::string_view text,
                          std::string_view token);  // false for an empty token

}  // namespace zeroth::data
