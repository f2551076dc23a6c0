#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

// UTF-8 and the character classes that tokenizer files rely on.
namespace zeroth::text {

// The offset of the first byte that is not part of valid UTF-8 (no overlong forms, no surrogates).
[[nodiscard]] std::optional<std::size_t> first_invalid_utf8(std::string_view text) noexcept;

// Copies `bytes`, each maximal broken sequence becoming one U+FFFD (the Unicode standard's
// practice).
[[nodiscard]] std::string with_replacements(std::string_view bytes);

struct CodePoint {
  std::uint32_t value = 0;
  std::uint32_t length = 1;  // in bytes
};

// The code point that starts at `offset` of valid UTF-8.
[[nodiscard]] CodePoint code_point_at(std::string_view valid, std::size_t offset) noexcept;
// The one that ends at `end`, which is not 0.
[[nodiscard]] CodePoint code_point_before(std::string_view valid, std::size_t end) noexcept;

void append_utf8(std::string& to, std::uint32_t code_point);

[[nodiscard]] bool is_whitespace(std::uint32_t code_point) noexcept;   // Unicode White_Space
[[nodiscard]] bool is_word(std::uint32_t code_point) noexcept;         // \w
[[nodiscard]] bool is_numeric(std::uint32_t code_point) noexcept;      // category N
[[nodiscard]] bool is_punctuation(std::uint32_t code_point) noexcept;  // ASCII's, or category P

}  // namespace zeroth::text
