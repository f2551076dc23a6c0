#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/json.h"
#include "data/bad_rows.h"
#include "data/data_file.h"

namespace zeroth::data {

// How one stage reads JSON rows.
struct RowFormat {
  // Takes one row in, or says what is wrong with it.
  std::function<std::string(const RowPlace& place, const Json& row)> take;
  // Names the other format that a first row belongs to, or says nothing.
  std::function<std::string(const Json& first_row)> name_foreign;
};

// Hands the first `max_samples` rows (all if negative) of a JSON, JSONL or CSV file to
// `format.take` one by one; what cannot be used goes to `bad_rows`. Where no row is good and the
// first is of another format, the file is refused as a whole. Returns the number of rows read.
std::int64_t read_rows(const DataFile& file,
                       std::int64_t max_samples,
                       const RowFormat& format,
                       BadRows& bad_rows);

// Says where `text` stops being UTF-8, or nothing. `start` is where the text stands in its file.
[[nodiscard]] std::string utf8_problem(std::string_view text, TextPosition start);

}  // namespace zeroth::data
