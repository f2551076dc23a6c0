#include "shard/flat_layout.h"

#include <gtest/gtest.h>

namespace zeroth::shard {
namespace {

TEST(FlatLayout, ShardsAreEqualAndCoverEveryParameterOnce) {
  const std::vector<std::int64_t> numels{3, 100, 1, 0, 4097, 64};
  for (std::int64_t num_shards = 1; num_shards <= 9; ++num_shards) {
    const FlatLayout layout(numels, num_shards);
    EXPECT_EQ(layout.numel(), 4265);
    EXPECT_LT(layout.padded_numel() - layout.numel(), num_shards * 16);
    for (std::size_t i = 0; i < numels.size(); ++i) {
      std::int64_t covered = 0;
      for (std::int64_t rank = 0; rank < num_shards; ++rank) {
        covered += intersect(layout.parameter(i), layout.shard(rank)).size();
      }
      EXPECT_EQ(covered, numels[i]);
    }
    EXPECT_EQ(layout.shard(num_shards - 1).end, layout.padded_numel());
  }
}

TEST(FlatLayout, AParametersPlaceDoesNotDependOnTheNumberOfShards) {
  const std::vector<std::int64_t> numels{5, 7, 11};
  EXPECT_EQ(FlatLayout(numels, 1).parameters(), FlatLayout(numels, 4).parameters());
}

TEST(FlatLayout, AnEmptyUnitHasNoShards) {
  const FlatLayout layout({}, 3);
  EXPECT_EQ(layout.padded_numel(), 0);
}

}  // namespace
}  // namespace zeroth::shard
