#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "plan/bytes.h"

// Sizes as people write and read them.
namespace zeroth::plan {

// "80GiB" (2^30 bytes each), "80 GB" (10^9), "1.5TiB", "512mib", "4096B". nullopt for anything
// else: a number without a unit, a unit that is none or may mean bits ("80G", "80Gbit", "80Gb"),
// zero or less, more than 64 bits hold.
[[nodiscard]] std::optional<Bytes> parse_byte_size(std::string_view text);

// "80.00 GiB"; powers of 1024.
[[nodiscard]] std::string byte_text(Bytes bytes);

}  // namespace zeroth::plan
