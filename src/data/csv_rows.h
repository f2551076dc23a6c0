#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

// Comma-separated values (RFC 4180): a first line of names, fields with or without quotes, line
// ends inside quotes.
namespace zeroth::data {

struct CsvRow {
  std::size_t line = 1;  // where it begins, from 1
  std::vector<std::string> fields;
};

struct CsvRows {
  std::vector<std::string> names;
  std::vector<CsvRow> rows;
};

// kData, naming `source` and the line: a name twice or empty, a quote that never closes or closes
// within a field. Empty lines are passed over.
[[nodiscard]] CsvRows split_csv_rows(std::string_view text, const std::string& source);

// The row as an object of strings; `problem` says where it has another number of fields than there
// are names, and is empty for a good row.
[[nodiscard]] Json csv_object(const CsvRow& row,
                              const std::vector<std::string>& names,
                              std::string& problem);

}  // namespace zeroth::data
