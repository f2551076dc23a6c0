#pragma once

#include <string>
#include <string_view>

// GPT-2's byte alphabet: printable bytes (33-126, 161-172, 174-255) stand for themselves, the other
// 68 are written as U+0100, U+0101, ... in the order of their values, so that any bytes are visible
// characters.
namespace zeroth::text {

// The character (as UTF-8, at most 2 bytes) that stands for `byte`.
[[nodiscard]] std::string_view byte_character(unsigned char byte) noexcept;

[[nodiscard]] std::string to_byte_characters(std::string_view bytes);
void append_byte_characters(std::string& to, std::string_view bytes);

// Appends the bytes that `token` stands for; a token with any other character stands for its own
// UTF-8.
void append_bytes_of(std::string& to, std::string_view token);

// The pattern that GPT-2 cuts text by before byte pairs are merged.
inline constexpr std::string_view kGpt2Pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

}  // namespace zeroth::text
