#pragma once

#include <cstddef>
#include <string_view>

namespace zeroth::formats {

// Element types as safetensors names them.
enum class DType { kF64, kF32, kF16, kBF16, kI64, kI32, kI16, kI8, kU64, kU32, kU16, kU8, kBool, kF8E4M3, kF8E5M2 };

[[nodiscard]] std::size_t element_bytes(DType dtype) noexcept;
[[nodiscard]] std::string_view dtype_name(DType dtype) noexcept;  // "F32", "BF16", ...

}  // namespace zeroth::formats
