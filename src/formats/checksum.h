#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace zeroth::formats {

// XXH3-64 of the bytes, in 16 hexadecimal digits.
[[nodiscard]] std::string checksum_of(std::string_view bytes);
[[nodiscard]] std::string checksum_of(std::span<const std::byte> bytes);

}  // namespace zeroth::formats
