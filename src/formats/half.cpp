#include "formats/half.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"

namespace zeroth::formats {

float widened_bfloat16(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

float widened_float16(std::uint16_t bits) noexcept {
  constexpr int kFractionBits = 10;
  const int exponent = (bits >> kFractionBits) & 0x1F;
  const int fraction = bits & 0x3FF;
  const float sign = (bits & 0x8000) != 0 ? -1.0F : 1.0F;
  if (exponent == 0x1F) {
    return fraction == 0 ? sign * std::numeric_limits<float>::infinity()
                         : std::numeric_limits<float>::quiet_NaN();
  }
  const int whole = exponent == 0 ? fraction : fraction + (1 << kFractionBits);
  return sign * std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - 25);
}

void copy_as_float(const TensorView& view, std::int64_t begin, std::span<float> values) {
  ZEROTH_CHECK(is_weight_dtype(view.dtype), "no floats in {}", dtype_name(view.dtype));
  const std::size_t width = element_bytes(view.dtype);
  const std::span<const std::byte> bytes =
      view.bytes.subspan(static_cast<std::size_t>(begin) * width, values.size() * width);
  if (view.dtype == DType::kF32) {
    std::copy_n(bytes.begin(), bytes.size(), std::as_writable_bytes(values).begin());
    return;
  }
  const bool bfloat16 = view.dtype == DType::kBF16;
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, bytes.data() + i * sizeof(bits), sizeof(bits));
    values[i] = bfloat16 ? widened_bfloat16(bits) : widened_float16(bits);
  }
}

}  // namespace zeroth::formats
