#include "formats/half.h"

#include <array>
#include <cmath>
#include <limits>

#include "base/error.h"
#include <gtest/gtest.h>

namespace zeroth::formats {
namespace {

TEST(Half, BFloat16IsTheUpperHalfOfAFloat) {
  EXPECT_EQ(widened_bfloat16(0x3F80), 1.0F);
  EXPECT_EQ(widened_bfloat16(0xC040), -3.0F);
  EXPECT_EQ(widened_bfloat16(0x7F80), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(widened_bfloat16(0x7FC0)));
}

TEST(Half, Float16OfEveryKind) {
  EXPECT_EQ(widened_float16(0x3C00), 1.0F);
  EXPECT_EQ(widened_float16(0xC000), -2.0F);
  EXPECT_EQ(widened_float16(0x3555), 0.333251953125F);
  EXPECT_EQ(widened_float16(0x7BFF), 65504.0F);                  // the largest
  EXPECT_EQ(widened_float16(0x0400), std::ldexp(1.0F, -14));     // the smallest normal
  EXPECT_EQ(widened_float16(0x0001), std::ldexp(1.0F, -24));     // the smallest of all
  EXPECT_EQ(widened_float16(0x03FF), std::ldexp(1023.0F, -24));  // the largest subnormal
  EXPECT_EQ(widened_float16(0xFC00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(widened_float16(0x7E00)));
  EXPECT_TRUE(std::signbit(widened_float16(0x8000)));
}

TEST(Half, AStretchIsCopiedFromWhereItBegins) {
  const std::array<std::uint16_t, 4> halves{0x3C00, 0x4000, 0x4200, 0x4400};  // 1 2 3 4
  const TensorView view{
      .dtype = DType::kF16, .shape = {4}, .bytes = std::as_bytes(std::span(halves))};
  std::array<float, 2> values{};
  copy_as_float(view, 1, values);
  EXPECT_EQ(values, (std::array<float, 2>{2, 3}));
  const std::array<float, 3> floats{5, 6, 7};
  copy_as_float(
      {.dtype = DType::kF32, .shape = {3}, .bytes = std::as_bytes(std::span(floats))}, 1, values);
  EXPECT_EQ(values, (std::array<float, 2>{6, 7}));
}

TEST(Half, WhatHoldsNoFloatsIsABug) {
  std::array<float, 1> values{};
  EXPECT_THROW(copy_as_float({.dtype = DType::kI64, .shape = {0}, .bytes = {}}, 0, values), Error);
}

}  // namespace
}  // namespace zeroth::formats
