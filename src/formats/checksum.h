#pragma once

#include <string>
#include <string_view>

namespace zeroth::formats {

// XXH3-64 of the bytes, in 16 hexadecimal digits.
[[nodiscard]] std::string checksum_of(std::string_view bytes);

}  // namespace zeroth::formats
