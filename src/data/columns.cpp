#include "data/columns.h"

#include <algorithm>

#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::data {

std::vector<std::string> unknown_columns(const Json& row, std::span<const std::string> known) {
  std::vector<std::string> names;
  for (const auto& item : row.items()) {
    if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
      names.push_back(item.key());
    }
  }
  return names;
}

bool has_all(const Json& row, std::initializer_list<std::string_view> names) {
  return row.is_object() && std::all_of(names.begin(), names.end(), [&](std::string_view name) {
           return row.contains(name);
         });
}

ColumnReader::ColumnReader(const Json& row, std::span<const std::string> known)
    : row_(row), unknown_(unknown_columns(row, known)) {
}

std::string ColumnReader::required(const std::string& name) {
  if (!row_.contains(name)) {
    const auto similar = nearest(name, unknown_, 1);
    complain(fmt::format("missing \"{}\"{}",
                         name,
                         similar.empty() ? "" : fmt::format(" (found \"{}\")", similar[0])));
    return {};
  }
  return as_string(row_[name], name);
}

std::string ColumnReader::optional(const std::string& name) {
  const Json* value = optional_value(name);
  return value == nullptr ? std::string() : as_string(*value, name);
}

// Here one letter of difference counts as a misspelling: other columns are welcome.
const Json* ColumnReader::optional_value(const std::string& name) {
  if (row_.contains(name)) {
    return row_[name].is_null() ? nullptr : &row_[name];
  }
  for (const std::string& other : unknown_) {
    if (edit_distance(name, other) == 1) {
      complain(fmt::format("no column \"{}\"; \"{}\" was meant?", other, name));
    }
  }
  return nullptr;
}

std::string ColumnReader::problem() const {
  return join(problems_, "; ");
}

std::string ColumnReader::as_string(const Json& value, const std::string& name) {
  if (!value.is_string()) {
    complain(fmt::format("\"{}\": expected string, got {}", name, type_name(value)));
    return {};
  }
  return value.get<std::string>();
}

}  // namespace zeroth::data
