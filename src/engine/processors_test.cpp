#include "engine/processors.h"

#include <numeric>

#include <gtest/gtest.h>

namespace zeroth::engine {
namespace {

TEST(Processors, PartsAreDisjointAndTogetherAll) {
  for (const int size : {1, 2, 3, 7, 64}) {
    std::vector<int> processors(static_cast<std::size_t>(size));
    std::iota(processors.begin(), processors.end(), 10);
    for (int count = 1; count <= size; ++count) {
      std::vector<int> together;
      for (int index = 0; index < count; ++index) {
        const std::vector<int> part = part_of(processors, index, count);
        EXPECT_GE(static_cast<int>(part.size()), size / count);
        EXPECT_LE(static_cast<int>(part.size()), size / count + 1);
        together.insert(together.end(), part.begin(), part.end());
      }
      EXPECT_EQ(together, processors) << size << " for " << count;
    }
  }
}

TEST(Processors, MoreRanksThanProcessorsHaveNoPart) {
  EXPECT_TRUE(part_of({0, 1}, 0, 3).empty());
  EXPECT_TRUE(part_of({}, 0, 1).empty());
}

}  // namespace
}  // namespace zeroth::engine
