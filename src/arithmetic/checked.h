#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>

namespace zeroth::arithmetic {

// The product, or none where it does not fit 64 bits.
[[nodiscard]] inline std::optional<std::int64_t> product_of(
    std::initializer_list<std::int64_t> factors) noexcept {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) {
      return std::nullopt;
    }
  }
  return product;
}

struct Multiples {
  std::optional<std::int64_t> below;
  std::optional<std::int64_t> above;
};

// The multiples of `unit` (1 or more) nearest to `value`, which is none itself: positive ones that
// fit 64 bits.
[[nodiscard]] inline Multiples multiples_around(std::int64_t value, std::int64_t unit) noexcept {
  const std::int64_t below = value - value % unit;
  Multiples multiples;
  if (below > 0) {
    multiples.below = below;
  }
  std::int64_t above = 0;
  if (!__builtin_add_overflow(below, unit, &above)) {
    multiples.above = above;
  }
  return multiples;
}

}  // namespace zeroth::arithmetic
