#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

// Rows out of a JSON text without holding the whole as a tree: a file of hundreds of megabytes
// costs its bytes and one row's tree at a time.
namespace zeroth::data {

enum class RowLayout { kArray, kLines };

struct RowText {
  std::string_view text;
  TextPosition start;
};

struct JsonRows {
  RowLayout layout = RowLayout::kArray;
  std::vector<RowText> rows;
};

// Finds the rows of an array of objects, or of JSONL: told apart by the content, since JSONL often
// comes under a .json name; `lines_expected` (a .jsonl name) decides where the first line is
// broken. The text of a row may still be invalid. A text that is neither is a kData error with line
// and column.
[[nodiscard]] JsonRows split_json_rows(std::string_view text,
                                       const std::string& source,
                                       bool lines_expected);

// The tree of one row. Invalid JSON is a kData error naming source:line:column in the file.
[[nodiscard]] Json parse_row(const RowText& row, const std::string& source);

}  // namespace zeroth::data
