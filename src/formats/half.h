#pragma once

#include <cstdint>
#include <span>

#include "formats/safetensors.h"

// Numbers of 16 bits as fp32, which holds each of them exactly.
namespace zeroth::formats {

[[nodiscard]] float widened_bfloat16(std::uint16_t bits) noexcept;
[[nodiscard]] float widened_float16(std::uint16_t bits) noexcept;  // IEEE 754 binary16

// Elements [begin, begin + values.size()) of a tensor of F32, BF16 or F16, in fp32.
void copy_as_float(const TensorView& view, std::int64_t begin, std::span<float> values);

}  // namespace zeroth::formats
