#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "comm/communicator.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>

// Between communicators, which know bytes, and tensors.
namespace zeroth::zero {

[[nodiscard]] inline at::ScalarType scalar_type(comm::NumberType type) noexcept {
  switch (type) {
    case comm::NumberType::kBFloat16:
      return at::kBFloat16;
    case comm::NumberType::kFloat16:
      return at::kHalf;
    case comm::NumberType::kFloat32:
      break;
  }
  return at::kFloat;
}

[[nodiscard]] inline std::int64_t width_of(comm::NumberType type) noexcept {
  return static_cast<std::int64_t>(comm::bytes_of(type));
}

// `numel` elements of raw memory as a tensor that borrows them.
[[nodiscard]] inline at::Tensor flat_view(void* data, std::int64_t numel, at::ScalarType dtype) {
  return at::from_blob(data, {numel}, at::TensorOptions(dtype));
}

// The bytes of a contiguous tensor.
[[nodiscard]] inline std::span<const std::byte> bytes_of(const at::Tensor& values) {
  return {static_cast<const std::byte*>(values.data_ptr()), values.nbytes()};
}

}  // namespace zeroth::zero
