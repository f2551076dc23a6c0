#pragma once

#include <array>
#include <cstddef>
#include <string>

#include "base/random.h"

namespace zeroth::quickstart {

template <typename T, std::size_t N>
[[nodiscard]] const T& choose(RandomStream& random, const std::array<T, N>& from) {
  return from[static_cast<std::size_t>(random.below(N))];
}

[[nodiscard]] inline bool one_in(RandomStream& random, std::uint64_t n) {
  return random.below(n) == 0;
}

}  // namespace zeroth::quickstart
