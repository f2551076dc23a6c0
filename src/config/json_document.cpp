// JSON as people write configurations: with comments and trailing commas, and nothing else that RFC
// 8259 does not have.
#include <cctype>
#include <cstdint>

#include "base/error.h"
#include "config/document.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

constexpr std::size_t kDeepest = 64;  // blocks in blocks; no configuration comes near

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// Where a UTF-8 sequence that starts at `at` ends; `at` itself if there is none (RFC 3629: no
// overlong forms, no surrogates).
std::size_t end_of_character(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U;
  };
  const unsigned first = byte(at);
  const std::size_t length = first < 0x80   ? 1
                             : first < 0xC2 ? 0
                             : first < 0xE0 ? 2
                             : first < 0xF0 ? 3
                             : first < 0xF5 ? 4
                                            : 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80U) {
      return at;
    }
  }
  const unsigned second = byte(at + 1);
  const bool wrong = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                     (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return wrong ? at : at + length;
}

void append_utf8(std::string& text, std::uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0U | (code >> 6U));
    text += static_cast<char>(0x80U | (code & 0x3FU));
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0U | (code >> 12U));
    text += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
    text += static_cast<char>(0x80U | (code & 0x3FU));
  } else {
    text += static_cast<char>(0xF0U | (code >> 18U));
    text += static_cast<char>(0x80U | ((code >> 12U) & 0x3FU));
    text += static_cast<char>(0x80U | ((code >> 6U) & 0x3FU));
    text += static_cast<char>(0x80U | (code & 0x3FU));
  }
}

class Reader {
 public:
  Reader(std::string_view text, const std::string& name, Problems& problems)
      : text_(text), name_(name), problems_(problems) {}

  Node read() {
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") {
      at_ = 3;  // a byte order mark, as some editors leave it
    }
    skip_space();
    if (at_ == text_.size()) {
      fail("the file is empty");
    }
    if (text_[at_] != '{') {
      fail("a configuration starts with {");
    }
    Node node = value(0);
    skip_space();
    if (at_ < text_.size()) {
      fail(fmt::format("{} after the end of the configuration", seen()));
    }
    return node;
  }

 private:
  [[noreturn]] void fail(const std::string& what) const { fail_at(at_, what); }

  [[noreturn]] void fail_at(std::size_t offset, const std::string& what) const {
    const TextPosition position = position_of(text_, offset);
    throw Error(
        ErrorKind::kConfig,
        fmt::format("{}:{}:{} is not valid JSON: {}", name_, position.line, position.column, what));
  }

  // What stands here, for a message on a terminal.
  [[nodiscard]] std::string seen() const {
    if (at_ >= text_.size()) {
      return "the end of the file";
    }
    const auto byte = static_cast<unsigned char>(text_[at_]);
    return byte >= 0x21 && byte < 0x7F ? fmt::format("'{}'", text_[at_])
                                       : fmt::format("byte 0x{:02x}", byte);
  }

  [[nodiscard]] bool next_is(std::string_view word) const {
    return text_.substr(at_, word.size()) == word;
  }

  std::size_t line_here() {
    for (; counted_ < at_; ++counted_) {
      line_ += text_[counted_] == '\n' ? 1 : 0;
    }
    return line_;
  }

  void skip_line() {
    while (at_ < text_.size() && text_[at_] != '\n') {
      ++at_;
    }
  }

  void skip_block_comment() {
    const std::size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos) {
      fail("a comment /* that never ends");
    }
    at_ = end + 2;
  }

  void skip_space() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
        ++at_;
      } else if (c == '#' || next_is("//")) {
        skip_line();
      } else if (next_is("/*")) {
        skip_block_comment();
      } else {
        return;
      }
    }
  }

  Node value(std::size_t depth) {
    if (depth > kDeepest) {
      fail(fmt::format("more than {} blocks in one another", kDeepest));
    }
    skip_space();
    Node node;
    node.line = line_here();
    const char c = at_ < text_.size() ? text_[at_] : '\0';
    if (c == '{') {
      read_block(node, depth);
    } else if (c == '[') {
      read_list(node, depth);
    } else if (c == '"') {
      node.kind = Node::Kind::kText;
      node.text = string();
    } else if (c == '-' || is_digit(c)) {
      node.kind = Node::Kind::kNumber;
      node.text = number();
    } else {
      read_word(node);
    }
    return node;
  }

  void read_word(Node& node) {
    const std::size_t start = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0)) {
      ++at_;
    }
    node.text = std::string(text_.substr(start, at_ - start));
    if (node.text == "true" || node.text == "false") {
      node.kind = Node::Kind::kBoolean;
    } else if (node.text == "null") {
      node.kind = Node::Kind::kNull;
    } else {
      at_ = start;
      fail(node.text.empty() ? fmt::format("a value is expected, not {}", seen())
                             : fmt::format("{} is no value: texts stand in quotes, the words are "
                                           "true, false and null",
                                           node.text.substr(0, 40)));
    }
  }

  std::string number() {
    const std::size_t start = at_;
    at_ += text_[at_] == '-' ? 1 : 0;
    const bool leading_zero = at_ < text_.size() && text_[at_] == '0';
    const std::size_t digits = skip_digits();
    if (digits == 0 || (leading_zero && digits > 1)) {
      fail_at(start, "a number is not written like that");
    }
    if (at_ < text_.size() && text_[at_] == '.') {
      ++at_;
      require_digits(start);
    }
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      ++at_;
      at_ += at_ < text_.size() && (text_[at_] == '+' || text_[at_] == '-') ? 1 : 0;
      require_digits(start);
    }
    return std::string(text_.substr(start, at_ - start));
  }

  std::size_t skip_digits() {
    const std::size_t start = at_;
    while (at_ < text_.size() && is_digit(text_[at_])) {
      ++at_;
    }
    return at_ - start;
  }

  void require_digits(std::size_t start) {
    if (skip_digits() == 0) {
      fail_at(start, "a number is not written like that");
    }
  }

  std::string string() {
    const std::size_t start = at_++;
    std::string text;
    while (at_ < text_.size() && text_[at_] != '"') {
      if (text_[at_] == '\\') {
        read_escape(text);
      } else if (static_cast<unsigned char>(text_[at_]) < 0x20) {
        fail(text_[at_] == '\n' ? "the quotes are not closed on this line"
                                : fmt::format("{} inside quotes", seen()));
      } else {
        const std::size_t end = end_of_character(text_, at_);
        if (end == at_) {
          fail(fmt::format("{} is not UTF-8", seen()));
        }
        text += text_.substr(at_, end - at_);
        at_ = end;
      }
    }
    if (at_ >= text_.size()) {
      fail_at(start, "quotes that are never closed");
    }
    ++at_;
    return text;
  }

  void read_escape(std::string& text) {
    constexpr std::string_view kLetters = "\"\\/bfnrt";
    constexpr std::string_view kMeanings = "\"\\/\b\f\n\r\t";
    ++at_;
    const char letter = at_ < text_.size() ? text_[at_] : '\0';
    if (letter == 'u') {
      ++at_;
      append_utf8(text, escaped_code());
      return;
    }
    const std::size_t which = letter == '\0' ? std::string_view::npos : kLetters.find(letter);
    if (which == std::string_view::npos) {
      fail(fmt::format("\\ before {}", seen()));
    }
    text += kMeanings[which];
    ++at_;
  }

  std::uint32_t escaped_code() {
    const std::uint32_t first = four_hex_digits();
    const bool high = first >= 0xD800 && first < 0xDC00;
    if (!high && (first < 0xDC00 || first > 0xDFFF)) {
      return first;
    }
    if (high && next_is("\\u")) {
      at_ += 2;
      const std::uint32_t second = four_hex_digits();
      if (second >= 0xDC00 && second <= 0xDFFF) {
        return 0x10000U + ((first - 0xD800U) << 10U) + (second - 0xDC00U);
      }
    }
    fail("half of a surrogate pair");
  }

  std::uint32_t four_hex_digits() {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = at_ < text_.size() ? text_[at_] : '\0';
      if (std::isxdigit(static_cast<unsigned char>(c)) == 0) {
        fail(fmt::format("\\u takes four hexadecimal digits, not {}", seen()));
      }
      const int digit = is_digit(c) ? c - '0' : std::tolower(c) - 'a' + 10;
      code = code * 16 + static_cast<std::uint32_t>(digit);
    }
    return code;
  }

  void read_list(Node& node, std::size_t depth) {
    node.kind = Node::Kind::kList;
    ++at_;
    while (!ends_with(']')) {
      node.items.push_back(value(depth + 1));
      expect_separator(']');
    }
  }

  void read_block(Node& node, std::size_t depth) {
    node.kind = Node::Kind::kBlock;
    ++at_;
    while (!ends_with('}')) {
      if (text_[at_] != '"') {
        fail(fmt::format("a key in quotes is expected, not {}", seen()));
      }
      Member member;
      member.line = line_here();
      member.key = string();
      skip_space();
      if (at_ >= text_.size() || text_[at_] != ':') {
        fail(fmt::format("a colon is expected after \"{}\", not {}", member.key, seen()));
      }
      ++at_;
      member.value = value(depth + 1);
      add_member(node, std::move(member), name_, problems_);
      expect_separator('}');
    }
  }

  // Goes past the end of a list or block if it stands here.
  bool ends_with(char end) {
    skip_space();
    if (at_ >= text_.size()) {
      fail(fmt::format("the file ends where '{}' is missing", end));
    }
    if (text_[at_] != end) {
      return false;
    }
    ++at_;
    return true;
  }

  void expect_separator(char end) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == ',') {
      ++at_;
    } else if (at_ >= text_.size() || text_[at_] != end) {
      fail(fmt::format("',' or '{}' is expected, not {}", end, seen()));
    }
  }

  std::string_view text_;
  const std::string& name_;
  Problems& problems_;
  std::size_t at_ = 0;
  std::size_t counted_ = 0;  // line_ is that of this offset
  std::size_t line_ = 1;
};

}  // namespace

Node read_json(std::string_view text, const std::string& name, Problems& problems) {
  return Reader(text, name, problems).read();
}

}  // namespace zeroth::config
