#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "base/json.h"

namespace zeroth::text {

// Reads JSON from front to back without building a document: a vocabulary of 260,000 entries would
// cost a document far more time and memory than the table it ends in. Every mismatch is a kFormat
// error with source:line:column. Strings without escapes are views into the text; others live as
// long as the cursor.
class JsonCursor {
 public:
  // `text` must outlive the cursor.
  JsonCursor(std::string_view text, std::string source);

  [[nodiscard]] std::size_t size() const noexcept { return text_.size(); }  // in bytes, all of it

  [[nodiscard]] char peek();  // the first character of what comes next; '\0' at the end
  std::string_view string(std::string_view what);
  std::int64_t integer(std::string_view what);
  Json value();       // whatever comes next, as a document
  void skip_value();  // the same, unread

  // read(key) must consume the member's value.
  template <typename Read>
  void object(std::string_view what, Read read) {
    for (bool more = open('{', '}', what); more; more = next('}', what)) {
      const std::string_view key = string(what);
      expect(':', what);
      read(key);
    }
  }

  // read() must consume one element.
  template <typename Read>
  void array(std::string_view what, Read read) {
    for (bool more = open('[', ']', what); more; more = next(']', what)) {
      read();
    }
  }

  void expect_end();
  [[noreturn]] void fail(const std::string& what_is_wrong) const;  // names the current position

 private:
  void skip_space();
  void skip_scalar();
  void expect(char character, std::string_view what);
  bool open(char opening, char closing, std::string_view what);
  bool next(char closing, std::string_view what);
  std::string_view escaped_string(std::size_t start);
  std::uint32_t escaped_code_point();
  std::uint32_t four_hex_digits();

  std::string_view text_;
  std::string source_;
  std::size_t at_ = 0;
  std::deque<std::string> unescaped_;
};

}  // namespace zeroth::text
