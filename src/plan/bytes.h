#pragma once

#include <compare>
#include <cstdint>
#include <limits>

#include "offload/swap_file.h"

namespace zeroth::plan {

// A number of bytes. Sums and products end at the largest number instead of wrapping: a plan that
// large fits nowhere, and says so.
class Bytes {
 public:
  constexpr Bytes() = default;

  constexpr explicit Bytes(std::int64_t count) : count_(count) {}

  [[nodiscard]] constexpr std::int64_t count() const noexcept { return count_; }

  friend constexpr auto operator<=>(Bytes, Bytes) = default;

  friend constexpr Bytes operator+(Bytes a, Bytes b) noexcept {
    std::int64_t sum = 0;
    return __builtin_add_overflow(a.count_, b.count_, &sum) ? most(a.count_ > 0) : Bytes(sum);
  }

  friend constexpr Bytes operator-(Bytes a, Bytes b) noexcept {
    std::int64_t difference = 0;
    return __builtin_sub_overflow(a.count_, b.count_, &difference) ? most(a.count_ > 0)
                                                                   : Bytes(difference);
  }

  friend constexpr Bytes operator*(Bytes a, std::int64_t times) noexcept {
    std::int64_t product = 0;
    return __builtin_mul_overflow(a.count_, times, &product) ? most((a.count_ > 0) == (times > 0))
                                                             : Bytes(product);
  }

  constexpr Bytes& operator+=(Bytes other) noexcept { return *this = *this + other; }

 private:
  static constexpr Bytes most(bool positive) noexcept {
    return Bytes(positive ? std::numeric_limits<std::int64_t>::max()
                          : std::numeric_limits<std::int64_t>::min());
  }

  std::int64_t count_ = 0;
};

// One of `parts` equal shares, rounded up.
[[nodiscard]] constexpr Bytes share_of(Bytes whole, std::int64_t parts) noexcept {
  return Bytes(whole.count() / parts + (whole.count() % parts > 0 ? 1 : 0));
}

// Rounded up to whole pages, as files and memory exchange them.
[[nodiscard]] constexpr Bytes in_pages(Bytes bytes) noexcept {
  return share_of(bytes, offload::kAlignment) * offload::kAlignment;
}

}  // namespace zeroth::plan
