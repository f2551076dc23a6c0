#pragma once

#include <string_view>

namespace zeroth::memory {

// LibTorch tells that memory ran out in words alone.
[[nodiscard]] inline bool says_out_of_memory(std::string_view message) noexcept {
  for (const std::string_view words :
       {"can't allocate memory", "not enough memory", "Storage size calculation overflowed"}) {
    if (message.find(words) != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace zeroth::memory
