#include "base/random.h"

#include <cmath>
#include <numbers>

namespace zeroth {

std::array<std::uint32_t, 4> philox(std::uint64_t key,
                                    std::uint64_t counter_low,
                                    std::uint64_t counter_high) noexcept {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32U); };

  std::uint32_t c0 = low(counter_low);
  std::uint32_t c1 = high(counter_low);
  std::uint32_t c2 = low(counter_high);
  std::uint32_t c3 = high(counter_high);
  std::uint32_t k0 = low(key);
  std::uint32_t k1 = high(key);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * c0;
    const std::uint64_t product1 = kMultiplier1 * c2;
    c0 = high(product1) ^ c1 ^ k0;
    c1 = low(product1);
    c2 = high(product0) ^ c3 ^ k1;
    c3 = low(product0);
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return {c0, c1, c2, c3};
}

std::uint32_t RandomStream::next() noexcept {
  if (used_ == block_.size()) {
    block_ = philox(key_, position_++, purpose_);
    used_ = 0;
  }
  return block_[used_++];
}

std::uint64_t RandomStream::below(std::uint64_t bound) noexcept {
  // Rejection keeps every value equally likely.
  const std::uint64_t limit = bound * (UINT64_MAX / bound);
  while (true) {
    const std::uint64_t high = next();
    const std::uint64_t draw = (high << 32U) | next();
    if (draw < limit) {
      return draw % bound;
    }
  }
}

double RandomStream::uniform() noexcept {
  const std::uint64_t high = next();
  const std::uint64_t bits = (high << 32U) | next();
  return static_cast<double>(bits >> 11U) * 0x1.0p-53;
}

double RandomStream::normal() noexcept {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace zeroth
