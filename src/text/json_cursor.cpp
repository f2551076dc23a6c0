#include "text/json_cursor.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "text/utf8.h"
#include <fmt/format.h>

namespace zeroth::text {

JsonCursor::JsonCursor(std::string_view text, std::string source)
    : text_(text), source_(std::move(source)) {
  if (const auto bad = first_invalid_utf8(text)) {
    at_ = *bad;
    fail("is not valid UTF-8");
  }
}

void JsonCursor::fail(const std::string& what_is_wrong) const {
  const TextPosition position = position_of(text_, at_);
  throw Error(ErrorKind::kFormat,
              fmt::format("{}:{}:{}: {}", source_, position.line, position.column, what_is_wrong));
}

void JsonCursor::skip_space() {
  while (at_ < text_.size() &&
         (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
    ++at_;
  }
}

char JsonCursor::peek() {
  skip_space();
  return at_ < text_.size() ? text_[at_] : '\0';
}

void JsonCursor::expect(char character, std::string_view what) {
  const char found = peek();
  if (at_ >= text_.size()) {
    fail(fmt::format(
        "the file ends where '{}' of {} should stand; it may have been cut off", character, what));
  }
  if (found != character) {
    fail(fmt::format("expected '{}' of {}, found '{}'", character, what, text_.substr(at_, 1)));
  }
  ++at_;
}

bool JsonCursor::open(char opening, char closing, std::string_view what) {
  expect(opening, what);
  if (peek() == closing) {
    ++at_;
    return false;
  }
  return true;
}

bool JsonCursor::next(char closing, std::string_view what) {
  if (peek() == ',') {
    ++at_;
    return true;
  }
  expect(closing, what);
  return false;
}

std::string_view JsonCursor::string(std::string_view what) {
  expect('"', what);
  const std::size_t start = at_;
  for (; at_ < text_.size(); ++at_) {
    const char character = text_[at_];
    if (character == '"') {
      return text_.substr(start, at_++ - start);
    }
    if (character == '\\') {
      return escaped_string(start);
    }
    if (static_cast<unsigned char>(character) < 0x20) {
      fail("a control character stands in a string; JSON wants it escaped");
    }
  }
  fail("the file ends inside a string; it may have been cut off");
}

std::string_view JsonCursor::escaped_string(std::size_t start) {
  std::string& out = unescaped_.emplace_back(text_.substr(start, at_ - start));
  for (; at_ < text_.size(); ++at_) {
    const char character = text_[at_];
    if (character == '"') {
      ++at_;
      return out;
    }
    if (static_cast<unsigned char>(character) < 0x20) {
      fail("a control character stands in a string; JSON wants it escaped");
    }
    if (character == '\\') {
      append_utf8(out, escaped_code_point());
    } else {
      out += character;
    }
  }
  fail("the file ends inside a string; it may have been cut off");
}

// Stands on the backslash; leaves the cursor on the escape's last character.
std::uint32_t JsonCursor::escaped_code_point() {
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
  const char kind = ++at_ < text_.size() ? text_[at_] : '\0';
  if (kind != 'u') {
    const std::size_t found = kEscapes.find(kind);
    if (kind == '\0' || found == std::string_view::npos) {
      fail("a backslash stands before something that JSON does not escape");
    }
    return static_cast<unsigned char>(kMeanings[found]);
  }
  const std::uint32_t first = four_hex_digits();
  if (first < 0xD800 || first > 0xDFFF) {
    return first;
  }
  if (first > 0xDBFF || text_.substr(at_ + 1, 2) != "\\u") {
    fail("half a surrogate pair stands alone");
  }
  at_ += 2;
  const std::uint32_t second = four_hex_digits();
  if (second < 0xDC00 || second > 0xDFFF) {
    fail("half a surrogate pair stands alone");
  }
  return 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
}

std::uint32_t JsonCursor::four_hex_digits() {
  std::uint32_t value = 0;
  const std::string_view digits = text_.substr(at_ + 1, 4);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc() || digits.size() != 4 || end != digits.data() + 4) {
    fail("\\u wants four hexadecimal digits");
  }
  at_ += 4;
  return value;
}

std::int64_t JsonCursor::integer(std::string_view what) {
  if (peek() == '\0' && at_ >= text_.size()) {
    fail(fmt::format("the file ends where {} should stand; it may have been cut off", what));
  }
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  const auto stop = static_cast<std::size_t>(end - text_.data());
  const char after = stop < text_.size() ? text_[stop] : '\0';
  if (error != std::errc() || after == '.' || after == 'e' || after == 'E') {
    fail(fmt::format("expected a whole number ({}), found {}", what, text_.substr(at_, 20)));
  }
  at_ = stop;
  return value;
}

void JsonCursor::skip_value() {
  std::size_t depth = 0;
  do {
    const char ahead = peek();
    if (ahead == '{' || ahead == '[') {
      ++depth;
      ++at_;
    } else if (depth > 0 && (ahead == '}' || ahead == ']')) {
      --depth;
      ++at_;
    } else if (depth > 0 && (ahead == ',' || ahead == ':')) {
      ++at_;
    } else if (ahead == '"') {
      string("a value");
    } else {
      skip_scalar();
    }
  } while (depth > 0);
}

void JsonCursor::skip_scalar() {
  if (at_ >= text_.size()) {
    fail("the file ends inside a value; it may have been cut off");
  }
  const std::size_t end = std::min(text_.find_first_of(",:{}[]\" \t\r\n", at_), text_.size());
  if (end == at_) {
    fail(fmt::format("expected a value, found '{}'", text_[at_]));
  }
  at_ = end;
}

Json JsonCursor::value() {
  skip_space();
  const std::size_t start = at_;
  skip_value();
  const std::string_view text = text_.substr(start, at_ - start);
  Json parsed = Json::parse(text, nullptr, false);
  if (parsed
          .is_discarded()) {  // again, for the message; counting lines is too slow to do each time
    parsed = parse_json(text, source_, ErrorKind::kFormat, position_of(text_, start).line);
  }
  return parsed;
}

void JsonCursor::expect_end() {
  if (peek() != '\0' || at_ < text_.size()) {
    fail("something stands after the end of the document");
  }
}

}  // namespace zeroth::text
