#pragma once

#include <string_view>

#include "base/error.h"

#include <c10/util/Exception.h>

namespace zeroth::library {

// LibTorch tells that memory ran out in words alone.
[[nodiscard]] inline ErrorKind kind_of(std::string_view message) noexcept {
  for (const std::string_view words :
       {"can't allocate memory", "not enough memory", "Storage size calculation overflowed"}) {
    if (message.find(words) != std::string_view::npos) {
      return ErrorKind::kMemory;
    }
  }
  return ErrorKind::kModel;
}

[[nodiscard]] inline Error as_error(const c10::Error& error) {
  const char* message = error.what_without_backtrace();
  return {kind_of(message), message};
}

}  // namespace zeroth::library
