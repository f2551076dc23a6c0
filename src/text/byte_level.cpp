#include "text/byte_level.h"

#include <array>
#include <cstdint>

#include "text/utf8.h"

namespace zeroth::text {
namespace {

constexpr std::uint32_t kFirstStandIn = 0x100;
constexpr std::uint32_t kEndOfAlphabet = 0x144;  // 68 stand-ins
constexpr std::int16_t kNoByte = -1;

constexpr bool stands_for_itself(std::uint32_t byte) {
  return (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
}

struct Alphabet {
  std::array<std::array<char, 2>, 256> characters{};
  std::array<std::uint8_t, 256> lengths{};
  std::array<std::int16_t, kEndOfAlphabet> bytes{};

  constexpr Alphabet() {
    bytes.fill(kNoByte);
    std::uint32_t next = kFirstStandIn;
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      add(byte, stands_for_itself(byte) ? byte : next++);
    }
  }

  constexpr void add(std::uint32_t byte, std::uint32_t character) {
    bytes[character] = static_cast<std::int16_t>(byte);
    if (character < 0x80) {
      characters[byte] = {static_cast<char>(character), 0};
      lengths[byte] = 1;
    } else {
      characters[byte] = {static_cast<char>(0xC0 | character >> 6),
                          static_cast<char>(0x80 | (character & 0x3F))};
      lengths[byte] = 2;
    }
  }
};

constexpr Alphabet kAlphabet;

}  // namespace

std::string_view byte_character(unsigned char byte) noexcept {
  return {kAlphabet.characters[byte].data(), kAlphabet.lengths[byte]};
}

std::string to_byte_characters(std::string_view bytes) {
  std::string out;
  append_byte_characters(out, bytes);
  return out;
}

void append_byte_characters(std::string& to, std::string_view bytes) {
  for (const char byte : bytes) {
    to += byte_character(static_cast<unsigned char>(byte));
  }
}

void append_bytes_of(std::string& to, std::string_view token) {
  const std::size_t before = to.size();
  for (std::size_t offset = 0; offset < token.size();) {
    const CodePoint point = code_point_at(token, offset);
    if (point.value >= kEndOfAlphabet || kAlphabet.bytes[point.value] == kNoByte) {
      to.resize(before);
      to += token;
      return;
    }
    to += static_cast<char>(kAlphabet.bytes[point.value]);
    offset += point.length;
  }
}

}  // namespace zeroth::text
