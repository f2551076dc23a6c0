#include "shard/kept.h"

#include <gtest/gtest.h>

namespace zeroth::shard {
namespace {

using Numels = std::vector<std::int64_t>;
using Kept = std::vector<bool>;

TEST(KeptInMemory, UnitsInTheirOrderAsLongAsTheyFit) {
  const Numels numels{10, 20, 30, 5};
  EXPECT_EQ(kept_in_memory(numels, 0), (Kept{false, false, false, false}));
  EXPECT_EQ(kept_in_memory(numels, 30), (Kept{true, true, false, false}));
  EXPECT_EQ(kept_in_memory(numels, 65), (Kept{true, true, true, true}));
}

TEST(KeptInMemory, AfterTheFirstOnFileAllAreButEmptyOnes) {
  EXPECT_EQ(kept_in_memory(Numels{10, 20, 5, 0}, 16), (Kept{true, false, false, true}));
}

TEST(KeptInMemory, TheRestOfAShareStays) {
  const Numels numels{100, 100, 100, 100};
  EXPECT_EQ(elements_kept(numels, 1.0), 0);
  EXPECT_EQ(elements_kept(numels, 0.75), 100);
  EXPECT_EQ(elements_kept(numels, 0.0), 400);
}

}  // namespace
}  // namespace zeroth::shard
