#include "text/utf8.h"

#include <algorithm>
#include <cstring>

#include <utf8proc.h>

namespace zeroth::text {
namespace {

struct Sequence {
  std::size_t length = 0;  // bytes that belong together; at least 1
  bool valid = false;
};

bool is_continuation(unsigned char byte) noexcept {
  return (byte & 0xC0) == 0x80;
}

struct LeadByte {
  std::size_t length;                     // 0: no sequence starts with it
  unsigned char second_low, second_high;  // the range of the second byte
};

LeadByte lead_byte(unsigned char lead) noexcept {
  if (lead >= 0xC2 && lead <= 0xDF) {
    return {2, 0x80, 0xBF};
  }
  if (lead >= 0xE0 && lead <= 0xEF) {
    return {3,
            static_cast<unsigned char>(lead == 0xE0 ? 0xA0 : 0x80),
            static_cast<unsigned char>(lead == 0xED ? 0x9F : 0xBF)};
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    return {4,
            static_cast<unsigned char>(lead == 0xF0 ? 0x90 : 0x80),
            static_cast<unsigned char>(lead == 0xF4 ? 0x8F : 0xBF)};
  }
  return {0, 0, 0};
}

Sequence sequence_at(std::string_view text, std::size_t offset) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[offset + i]); };
  if (byte(0) < 0x80) {
    return {1, true};
  }
  const LeadByte lead = lead_byte(byte(0));
  const std::size_t available = std::min(lead.length, text.size() - offset);
  if (available < 2 || byte(1) < lead.second_low || byte(1) > lead.second_high) {
    return {1, false};
  }
  std::size_t length = 2;
  while (length < available && is_continuation(byte(length))) {
    ++length;
  }
  return {length, length == lead.length};
}

// Skips whole words of ASCII; the result may stop short of the first other byte.
std::size_t skip_ascii(std::string_view text, std::size_t offset) noexcept {
  std::uint64_t word = 0;
  while (offset + sizeof(word) <= text.size()) {
    std::memcpy(&word, text.data() + offset, sizeof(word));
    if ((word & 0x8080808080808080ULL) != 0) {
      break;
    }
    offset += sizeof(word);
  }
  return offset;
}

utf8proc_category_t category(std::uint32_t code_point) noexcept {
  return utf8proc_category(static_cast<utf8proc_int32_t>(code_point));
}

}  // namespace

std::optional<std::size_t> first_invalid_utf8(std::string_view text) noexcept {
  std::size_t offset = skip_ascii(text, 0);
  while (offset < text.size()) {
    const Sequence sequence = sequence_at(text, offset);
    if (!sequence.valid) {
      return offset;
    }
    offset += sequence.length;
    if (sequence.length == 1) {
      offset = skip_ascii(text, offset);
    }
  }
  return std::nullopt;
}

std::string with_replacements(std::string_view bytes) {
  if (!first_invalid_utf8(bytes)) {
    return std::string(bytes);
  }
  std::string out;
  out.reserve(bytes.size() + 8);
  for (std::size_t offset = 0; offset < bytes.size();) {
    const Sequence sequence = sequence_at(bytes, offset);
    out +=
        sequence.valid ? bytes.substr(offset, sequence.length) : std::string_view("\xEF\xBF\xBD");
    offset += sequence.length;
  }
  return out;
}

CodePoint code_point_at(std::string_view valid, std::size_t offset) noexcept {
  const auto byte = [&](std::size_t i) {
    return static_cast<std::uint32_t>(static_cast<unsigned char>(valid[offset + i]));
  };
  const std::uint32_t lead = byte(0);
  if (lead < 0x80) {
    return {lead, 1};
  }
  if (lead < 0xE0) {
    return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  }
  if (lead < 0xF0) {
    return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  }
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F),
          4};
}

CodePoint code_point_before(std::string_view valid, std::size_t end) noexcept {
  std::size_t start = end - 1;
  while (start > 0 && is_continuation(static_cast<unsigned char>(valid[start]))) {
    --start;
  }
  return code_point_at(valid, start);
}

void append_utf8(std::string& to, std::uint32_t code_point) {
  const auto put = [&](std::uint32_t byte) { to += static_cast<char>(byte); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | code_point >> 6);
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | code_point >> 12);
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | code_point >> 18);
    put(0x80 | (code_point >> 12 & 0x3F));
    put(0x80 | (code_point >> 6 & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

bool is_whitespace(std::uint32_t code_point) noexcept {
  if (code_point < 0x80) {
    return code_point == ' ' || (code_point >= '\t' && code_point <= '\r');
  }
  const utf8proc_category_t kind = category(code_point);
  return code_point == 0x85 || kind == UTF8PROC_CATEGORY_ZS || kind == UTF8PROC_CATEGORY_ZL ||
         kind == UTF8PROC_CATEGORY_ZP;
}

bool is_word(std::uint32_t code_point) noexcept {
  switch (category(code_point)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_PC:
      return true;
    default:
      return code_point == 0x200C || code_point == 0x200D;  // the joiners
  }
}

bool is_numeric(std::uint32_t code_point) noexcept {
  const utf8proc_category_t kind = category(code_point);
  return kind == UTF8PROC_CATEGORY_ND || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_NO;
}

bool is_punctuation(std::uint32_t code_point) noexcept {
  if (code_point < 0x80) {
    return code_point > ' ' && code_point < 0x7F && !(code_point >= '0' && code_point <= '9') &&
           !((code_point | 0x20) >= 'a' && (code_point | 0x20) <= 'z');
  }
  const utf8proc_category_t kind = category(code_point);
  return kind >= UTF8PROC_CATEGORY_PC && kind <= UTF8PROC_CATEGORY_PO;
}

}  // namespace zeroth::text
