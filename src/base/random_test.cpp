#include "base/random.h"

#include <vector>

#include <gtest/gtest.h>

namespace zeroth {
namespace {

// Known answers published with the algorithm (Random123's kat_vectors, philox4x32 10 rounds).
TEST(Philox, GivesThePublishedNumbers) {
  const std::array<std::uint32_t, 4> zeros{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
  EXPECT_EQ(philox(0, 0, 0), zeros);
  const std::array<std::uint32_t, 4> ones{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd};
  EXPECT_EQ(philox(UINT64_MAX, UINT64_MAX, UINT64_MAX), ones);
}

TEST(RandomStream, StreamsOfOneSeedDifferByPurpose) {
  RandomStream a(7, 1);
  RandomStream same(7, 1);
  RandomStream other(7, 2);
  const std::uint32_t first = a.next();
  EXPECT_EQ(first, same.next());
  EXPECT_NE(first, other.next());
}

TEST(RandomStream, BelowCoversItsRangeEvenly) {
  RandomStream stream(1, 0);
  std::vector<int> counts(5);
  for (int i = 0; i < 5000; ++i) {
    ++counts[stream.below(5)];
  }
  for (const int count : counts) {
    EXPECT_NEAR(count, 1000, 150);
  }
}

TEST(RandomStream, NormalHasMeanZeroAndDeviationOne) {
  RandomStream stream(3, 0);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 20000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = stream.normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.03);
  EXPECT_NEAR(squares / kDraws, 1.0, 0.03);
}

}  // namespace
}  // namespace zeroth
