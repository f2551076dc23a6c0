#include "shard/on_file.h"

#include <gtest/gtest.h>

namespace zeroth::shard {
namespace {

const std::vector<std::int64_t> kUnits{100, 200, 300};

TEST(OnFile, GradientsFollowTheOptimizersState) {
  const FileRule rule{.optimizer = true, .gradients = true, .optimizer_share = 0.5};
  const OnFile kept{};
  const OnFile away{.optimizer = true, .gradients = true};
  EXPECT_EQ(on_file(rule, kUnits), (std::vector<OnFile>{kept, kept, away}));
}

TEST(OnFile, SmallUnitsAndTheFirstOnesKeepTheirWeights) {
  const OnFile kept{};
  const OnFile away{.parameters = true};
  EXPECT_EQ(on_file({.parameters = true, .persistent_parameters = 100}, kUnits),
            (std::vector<OnFile>{kept, away, away}));
  EXPECT_EQ(on_file({.parameters = true, .parameters_kept = 300}, kUnits),
            (std::vector<OnFile>{kept, kept, away}));
}

TEST(PieceElements, InMemoryAreAsAsked) {
  EXPECT_EQ(piece_elements(1000, 0, false), 1000);
  EXPECT_EQ(piece_elements(1000, 7, false), 7);
  EXPECT_EQ(piece_elements(1000, 2000, false), 1000);
}

TEST(PieceElements, OnFileAreWholePagesAndNoMoreThanKeepsADiskBusy) {
  EXPECT_EQ(piece_elements(100'000, 5000, true), 4096);
  EXPECT_EQ(piece_elements(100'000, 7, true), 2048);
  EXPECT_EQ(piece_elements(1'000'000'000, 0, true), 2 << 20);
}

}  // namespace
}  // namespace zeroth::shard
