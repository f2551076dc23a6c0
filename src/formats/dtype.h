#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace zeroth::formats {

// Element types as safetensors names them.
enum class DType {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kI16,
  kI8,
  kU64,
  kU32,
  kU16,
  kU8,
  kBool,
  kF8E4M3,
  kF8E5M2
};

[[nodiscard]] std::size_t element_bytes(DType dtype) noexcept;
[[nodiscard]] std::string_view dtype_name(DType dtype) noexcept;  // "F32", "BF16", ...
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name) noexcept;

// As config.json spells them: "float32", "bfloat16", ... ("torch.float32" is read too).
[[nodiscard]] std::string_view torch_dtype_name(DType dtype) noexcept;
[[nodiscard]] std::optional<DType> dtype_from_torch_name(std::string_view name) noexcept;

// The types that weights of a model or adapter may have here: F32, BF16, F16.
[[nodiscard]] bool is_weight_dtype(DType dtype) noexcept;

}  // namespace zeroth::formats
