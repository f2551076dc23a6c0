#include "shard/prefetch.h"

#include <vector>

#include <gtest/gtest.h>

namespace zeroth::shard {
namespace {

TEST(PrefetchDepth, CountsTheUnitsThatFitAhead) {
  const std::vector<std::int64_t> numels{50, 10, 10, 10, 10, 50};
  EXPECT_EQ(prefetch_depth({}, numels), 1);
  EXPECT_EQ(prefetch_depth({.ahead = 0}, numels), 0);
  EXPECT_EQ(prefetch_depth({.ahead = 5}, numels), 1);     // one at least
  EXPECT_EQ(prefetch_depth({.ahead = 25}, numels), 2);    // two blocks
  EXPECT_EQ(prefetch_depth({.ahead = 1000}, numels), 3);  // half of all at most
  EXPECT_EQ(prefetch_depth({.ahead = 1000, .live = 35}, numels), 2);
  EXPECT_EQ(prefetch_depth({.ahead = 1000, .live = 1}, numels), 1);
}

TEST(PrefetchDepth, OfOneUnitIsOne) {
  EXPECT_EQ(prefetch_depth({}, std::vector<std::int64_t>{7}), 1);
}

}  // namespace
}  // namespace zeroth::shard
