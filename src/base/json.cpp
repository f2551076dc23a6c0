#include "base/json.h"

#include <algorithm>

#include "base/printing.h"
#include <fmt/format.h>

namespace zeroth {
namespace {

bool continues_character(char byte) noexcept {
  return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U;
}

// A message goes to a terminal: bytes that are no text would disturb it.
std::string printable(std::string_view text) {
  std::string result;
  for (const char byte : text) {
    const auto code = static_cast<unsigned char>(byte);
    result += (code < 0x20 && code != '\t') || code == 0x7f ? '?' : byte;
  }
  if (!is_utf8(result)) {
    std::replace_if(
        result.begin(),
        result.end(),
        [](char byte) { return static_cast<unsigned char>(byte) >= 0x80; },
        '?');
  }
  return result;
}

std::string line_at(std::string_view text, std::size_t offset) {
  const std::size_t start = text.substr(0, offset).rfind('\n') + 1;  // npos + 1 == 0
  std::string_view line = text.substr(start, text.substr(start).find('\n'));
  constexpr std::size_t kShown = 80;
  if (line.size() <= kShown) {
    return std::string(line);
  }
  const std::size_t around = std::min(offset - start, line.size() - kShown);
  std::size_t from = around > kShown / 2 ? around - kShown / 2 : 0;
  std::size_t end = std::min(from + kShown, line.size());
  while (from > 0 && continues_character(line[from])) {
    --from;  // no character is cut in two
  }
  while (end < line.size() && continues_character(line[end])) {
    ++end;
  }
  return fmt::format("{}...", line.substr(from, end - from));
}

// nlohmann's text after the position, e.g. "unexpected end of input; expected '}'".
std::string reason_of(const nlohmann::json::parse_error& error) {
  const std::string what = error.what();
  const auto dash = what.find(" - ");
  return dash == std::string::npos ? what : what.substr(dash + 3);
}

}  // namespace

TextPosition position_of(std::string_view text, std::size_t byte_offset) {
  const std::string_view before = text.substr(0, byte_offset);
  const auto lines = static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n'));
  return {.line = lines + 1, .column = before.size() - (before.rfind('\n') + 1) + 1};
}

Json parse_json(std::string_view text,
                const std::string& source,
                ErrorKind kind,
                std::size_t first_line) {
  try {
    return Json::parse(text);
  } catch (
      const nlohmann::json::out_of_range& error) {  // a number such as 1e999: its place is not told
    throw Error(kind,
                fmt::format("{} holds a number that is out of range: {}", source, error.what()));
  } catch (const nlohmann::json::parse_error& error) {
    const std::size_t offset = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    const TextPosition position = position_of(text, offset);
    throw Error(kind,
                fmt::format("{}:{}:{} is not valid JSON: {}\n  there: {}",
                            source,
                            position.line + first_line - 1,
                            position.column,
                            printable(reason_of(error)),
                            printable(line_at(text, offset))));
  }
}

const char* type_name(const Json& value) noexcept {
  return value.type_name();
}

}  // namespace zeroth
