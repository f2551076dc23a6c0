#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace zeroth::data {

// Reads the columns of one row and gathers what is wrong with them. Columns of other names are left
// alone, unless a name looks like a misspelt column that is missing.
class ColumnReader {
 public:
  // `row` is an object; both outlive the reader.
  ColumnReader(const Json& row, std::span<const std::string> known);

  std::string required(const std::string& name);
  // An absent column and null are both "nothing".
  std::string optional(const std::string& name);
  // The same of any type; nullptr for "nothing".
  const Json* optional_value(const std::string& name);

  void complain(std::string problem) { problems_.push_back(std::move(problem)); }

  [[nodiscard]] std::string problem() const;  // all of them; empty for a good row

 private:
  std::string as_string(const Json& value, const std::string& name);

  const Json& row_;
  std::vector<std::string> unknown_;
  std::vector<std::string> problems_;
};

// Names of the row's columns that are not `known`.
[[nodiscard]] std::vector<std::string> unknown_columns(const Json& row,
                                                       std::span<const std::string> known);

[[nodiscard]] bool has_all(const Json& row, std::initializer_list<std::string_view> names);

}  // namespace zeroth::data
