#include "formats/checksum.h"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

namespace zeroth::formats {

std::string checksum_of(std::string_view bytes) {
  return checksum_of(std::as_bytes(std::span(bytes)));
}

std::string checksum_of(std::span<const std::byte> bytes) {
  return fmt::format("{:016x}", XXH3_64bits(bytes.data(), bytes.size()));
}

}  // namespace zeroth::formats
