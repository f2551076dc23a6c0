#include "plan/byte_size.h"

#include <limits>

#include <gtest/gtest.h>

namespace zeroth::plan {
namespace {

constexpr std::int64_t kGi = std::int64_t{1} << 30;

TEST(ByteSize, GiBAndGBDiffer) {
  EXPECT_EQ(parse_byte_size("80GiB"), Bytes(80 * kGi));
  EXPECT_EQ(parse_byte_size("80GB"), Bytes(80'000'000'000));
  EXPECT_EQ(parse_byte_size("80 gb"), Bytes(80'000'000'000));
  EXPECT_EQ(parse_byte_size(" 1.5TiB "), Bytes(1536 * kGi));
  EXPECT_EQ(parse_byte_size("512mib"), Bytes(kGi / 2));
  EXPECT_EQ(parse_byte_size("4096B"), Bytes(4096));
  EXPECT_EQ(parse_byte_size("2PB"), Bytes(2'000'000'000'000'000));
}

TEST(ByteSize, WhatIsNoSizeIsNone) {
  for (const char* text :
       {"",           "80",    "80G",       "80Gb",   "80Gib",  "80gB",  "80Gbit",
        "80 GB each", "GB",    "eighty GB", "-1GB",   "0GB",    "0.1B",  "1e3GB",
        "nanGB",      "infGB", "9000PiB",   "80GiBB", "80 i b", "80,5GB"}) {
    EXPECT_FALSE(parse_byte_size(text).has_value()) << text;
  }
}

TEST(ByteSize, IsShownInPowersOf1024) {
  EXPECT_EQ(byte_text(Bytes(0)), "0 B");
  EXPECT_EQ(byte_text(Bytes(1023)), "1023 B");
  EXPECT_EQ(byte_text(Bytes(1536)), "1.50 KiB");
  EXPECT_EQ(byte_text(Bytes(80 * kGi)), "80.00 GiB");
  EXPECT_EQ(byte_text(Bytes(std::numeric_limits<std::int64_t>::max())), "8.00 EiB");
}

TEST(Bytes, EndAtTheLargestNumberInsteadOfWrapping) {
  const Bytes most(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(most + Bytes(1), most);
  EXPECT_EQ(Bytes(std::int64_t{1} << 40) * (std::int64_t{1} << 40), most);
  EXPECT_EQ(Bytes(-2) - most, Bytes(std::numeric_limits<std::int64_t>::min()));
  EXPECT_EQ(share_of(Bytes(7), 2), Bytes(4));
  EXPECT_EQ(share_of(Bytes(8), 2), Bytes(4));
}

}  // namespace
}  // namespace zeroth::plan
