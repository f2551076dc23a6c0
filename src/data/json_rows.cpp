#include "data/json_rows.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::data {
namespace {

constexpr std::string_view kSpace = " \t\r\n";

std::size_t skip_space(std::string_view text, std::size_t offset) {
  return std::min(text.find_first_not_of(kSpace, offset), text.size());
}

// One past the closing quote of the string that opens at `offset`; npos where it never closes.
std::size_t end_of_string(std::string_view text, std::size_t offset) {
  for (++offset; offset < text.size(); ++offset) {
    if (text[offset] == '"') {
      return offset + 1;
    }
    offset += text[offset] == '\\' ? 1 : 0;  // passes over whatever is escaped
  }
  return std::string_view::npos;
}

// One past the bracket that closes the one at `offset`. Kinds of brackets are not compared: the
// parser does that.
std::size_t end_of_brackets(std::string_view text, std::size_t offset) {
  std::size_t depth = 0;
  while (offset < text.size()) {
    const char c = text[offset];
    if (c == '"') {
      offset = end_of_string(text, offset);
      continue;
    }
    depth += c == '{' || c == '[' ? 1 : 0;
    depth -= c == '}' || c == ']' ? 1 : 0;
    ++offset;
    if (depth == 0) {
      return offset;
    }
  }
  return std::string_view::npos;
}

std::size_t end_of_value(std::string_view text, std::size_t offset) {
  if (text[offset] == '{' || text[offset] == '[') {
    return end_of_brackets(text, offset);
  }
  if (text[offset] == '"') {
    return end_of_string(text, offset);
  }
  const std::size_t end = std::min(text.find_first_of(",]} \t\r\n", offset), text.size());
  return end == offset ? std::string_view::npos : end;
}

// Follows lines and columns while offsets grow, so that a file is counted through once.
class PositionCounter {
 public:
  explicit PositionCounter(std::string_view text) : text_(text) {}

  TextPosition at(std::size_t offset) {
    while (true) {
      const std::size_t newline = text_.find('\n', line_start_);
      if (newline >= offset) {
        return {.line = line_, .column = offset - line_start_ + 1};
      }
      line_start_ = newline + 1;
      ++line_;
    }
  }

 private:
  std::string_view text_;
  std::size_t line_start_ = 0;
  std::size_t line_ = 1;
};

// The elements of the array that opens at `offset`, which moves past its end; nothing where it is
// broken.
std::optional<std::vector<RowText>> split_array(std::string_view text, std::size_t& offset) {
  std::vector<RowText> rows;
  PositionCounter positions(text);
  offset = skip_space(text, offset + 1);
  if (offset < text.size() && text[offset] == ']') {
    ++offset;
    return rows;
  }
  while (offset < text.size()) {
    const std::size_t end = end_of_value(text, offset);
    if (end == std::string_view::npos) {
      return std::nullopt;
    }
    rows.push_back({.text = text.substr(offset, end - offset), .start = positions.at(offset)});
    offset = skip_space(text, end);
    if (offset == text.size() || (text[offset] != ',' && text[offset] != ']')) {
      return std::nullopt;
    }
    if (text[offset++] == ']') {
      return rows;
    }
    offset = skip_space(text, offset);
  }
  return std::nullopt;
}

std::vector<RowText> split_lines(std::string_view text) {
  std::vector<RowText> rows;
  for (std::size_t offset = 0, line = 1; offset < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', offset), text.size());
    const std::string_view row = text.substr(offset, end - offset);
    if (!trim(row).empty()) {
      rows.push_back({.text = row, .start = {.line = line, .column = 1}});
    }
    offset = end + 1;
  }
  return rows;
}

// True where the first line is one whole value by its brackets and more follows, or it is an
// object.
bool looks_like_lines(std::string_view text, std::size_t first) {
  const std::string_view line = text.substr(first, text.find('\n', first) - first);
  const std::size_t end = end_of_value(line, 0);
  if (end == std::string_view::npos || skip_space(line, end) != line.size()) {
    return false;
  }
  return line[0] == '{' || skip_space(text, first + line.size()) < text.size();
}

// The parser finds the place of the mistake; what it accepts is JSON, but no rows.
[[noreturn]] void refuse(std::string_view text, const std::string& source) {
  const Json value = parse_json(text, source, ErrorKind::kData);
  throw Error(ErrorKind::kData,
              fmt::format("{} holds one JSON {}, not rows\n  Give an array of objects ([{{...}}, "
                          "{{...}}]), or one object a line (JSONL).",
                          source,
                          type_name(value)));
}

}  // namespace

JsonRows split_json_rows(std::string_view text, const std::string& source, bool lines_expected) {
  const std::size_t first = skip_space(text, 0);
  if (first == text.size() || (text[first] != '[' && text[first] != '{')) {
    refuse(text, source);
  }
  if (looks_like_lines(text, first) || (lines_expected && text[first] == '{')) {
    return {.layout = RowLayout::kLines, .rows = split_lines(text)};
  }
  if (text[first] == '[') {
    std::size_t offset = first;
    auto rows = split_array(text, offset);
    if (rows && skip_space(text, offset) == text.size()) {
      return {.layout = RowLayout::kArray, .rows = std::move(*rows)};
    }
  }
  refuse(text, source);
}

Json parse_row(const RowText& row, const std::string& source) {
  try {
    return Json::parse(row.text);
  } catch (const Json::exception&) {
    // Again with the row's indentation in front, for the right column.
    const std::string indented = std::string(row.start.column - 1, ' ').append(row.text);
    return parse_json(indented, source, ErrorKind::kData, row.start.line);
  }
}

}  // namespace zeroth::data
