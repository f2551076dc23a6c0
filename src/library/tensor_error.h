#pragma once

#include <string_view>

#include "base/error.h"
#include "memory/tensor_error.h"

#include <c10/util/Exception.h>

namespace zeroth::library {

[[nodiscard]] inline ErrorKind kind_of(std::string_view message) noexcept {
  return memory::says_out_of_memory(message) ? ErrorKind::kMemory : ErrorKind::kModel;
}

[[nodiscard]] inline Error as_error(const c10::Error& error) {
  const char* message = error.what_without_backtrace();
  return {kind_of(message), message};
}

}  // namespace zeroth::library
