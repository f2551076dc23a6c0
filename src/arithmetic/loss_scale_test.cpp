#include "arithmetic/loss_scale.h"

#include <string_view>
#include <vector>

#include "base/error.h"
#include <gtest/gtest.h>

namespace zeroth::arithmetic {
namespace {

using Verdict = LossScaler::Verdict;

// Scales after each attempt of a story: 'x' an overflow, '.' a clean one.
std::vector<double> trajectory(LossScaler& scaler, std::string_view story) {
  std::vector<double> scales;
  for (const char attempt : story) {
    scaler.update(attempt == 'x');
    scales.push_back(scaler.scale());
  }
  return scales;
}

std::vector<double> trajectory(const LossScaleOptions& options, std::string_view story) {
  LossScaler scaler(options);
  return trajectory(scaler, story);
}

// As the caller has it: backward with the scale, division by that same scale, then update().
TEST(N22, EveryUpdateIsWholeThatOfTheGrowthToo) {
  LossScaler scaler({.initial_power = 8, .window = 2});
  double weight = 0;
  bool grew = false;
  for (int attempt = 1; attempt <= 8; ++attempt) {
    const double used = scaler.scale();
    const double gradient = 1.0 * used;
    ASSERT_EQ(scaler.update(false), Verdict::kFine);
    grew = grew || scaler.scale() > used;
    weight -= 0.1 * (gradient / used);
    EXPECT_DOUBLE_EQ(weight, -0.1 * attempt);
  }
  EXPECT_TRUE(grew);
  EXPECT_EQ(trajectory({.initial_power = 8, .window = 2}, "......"),
            (std::vector<double>{256, 256, 512, 512, 1024, 1024}));
}

TEST(N28, AnOverflowAtTheMinimumEndsTheRun) {
  LossScaler scaler({.initial_power = 2, .hysteresis = 1, .min_scale = 1});
  EXPECT_EQ(scaler.update(true), Verdict::kSkipped);
  EXPECT_EQ(scaler.scale(), 2);
  EXPECT_EQ(scaler.update(true), Verdict::kSkipped);
  EXPECT_EQ(scaler.scale(), 1);
  for (int more = 0; more < 3; ++more) {
    EXPECT_EQ(scaler.update(true), Verdict::kStuckAtMinimum);
    EXPECT_EQ(scaler.scale(), 1);
  }
}

TEST(N28, TheBudgetIsSpentAtTheMinimumBeforeTheRunEnds) {
  LossScaler scaler({.initial_power = 0, .hysteresis = 3});
  EXPECT_EQ(scaler.update(true), Verdict::kSkipped);
  EXPECT_EQ(scaler.update(true), Verdict::kSkipped);
  EXPECT_EQ(scaler.update(true), Verdict::kStuckAtMinimum);
}

TEST(N28, AMinimumThatIsNoPowerOfTwoIsNotPassed) {
  EXPECT_EQ(trajectory({.initial_power = 3, .hysteresis = 1, .min_scale = 3}, "xx"),
            (std::vector<double>{4, 3}));
}

TEST(N30, HysteresisBearsOneOverflowAndHalvesAtTheSecond) {
  EXPECT_EQ(trajectory({.hysteresis = 2}, "xx"), (std::vector<double>{65536, 32768}));
}

TEST(N30, ACleanAttemptRestoresTheBudgetOnlyWhereItIsConsecutive) {
  EXPECT_EQ(trajectory({.hysteresis = 2}, "x.x"), (std::vector<double>{65536, 65536, 32768}));
  EXPECT_EQ(trajectory({.hysteresis = 2, .consecutive_hysteresis = true}, "x.x"),
            (std::vector<double>{65536, 65536, 65536}));
}

TEST(N30, ASpentBudgetStaysSpentUntilAGrowth) {
  EXPECT_EQ(trajectory({.initial_power = 4, .window = 2, .hysteresis = 2}, "xx.x..."),
            (std::vector<double>{16, 8, 8, 4, 4, 4, 8}));
  LossScaler scaler({.initial_power = 4, .window = 2, .hysteresis = 2});
  trajectory(scaler, "xx...");  // halved, then doubled: the budget is whole again
  EXPECT_EQ(trajectory(scaler, "xx"), (std::vector<double>{16, 8}));
}

TEST(N34, AFixedScaleNeverMovesAndOverflowsAreSkipped) {
  LossScaler scaler({.fixed = 128, .window = 1, .hysteresis = 1});
  EXPECT_EQ(scaler.update(false), Verdict::kFine);
  EXPECT_EQ(trajectory(scaler, "....xxxx"), std::vector<double>(8, 128));
  EXPECT_EQ(scaler.update(true), Verdict::kSkipped);
  EXPECT_EQ(LossScaler({.fixed = 0}).scale(), 65536);
}

// DeepSpeed's own test of growth: 2^8, window 2, doubled on the third clean attempt and then on
// every second.
TEST(LossScale, GrowsOnTheAttemptAfterTheWindow) {
  EXPECT_EQ(trajectory({.initial_power = 8, .window = 2, .hysteresis = 1}, "......."),
            (std::vector<double>{256, 256, 512, 512, 1024, 1024, 2048}));
}

TEST(LossScale, HalvesOnEveryOverflowDownToTheMinimum) {
  EXPECT_EQ(
      trajectory({.initial_power = 4, .window = 2, .hysteresis = 1, .min_scale = 0.25}, "xxxxxx"),
      (std::vector<double>{8, 4, 2, 1, 0.5, 0.25}));
}

TEST(LossScale, OverflowsStartTheWindowAfresh) {
  EXPECT_EQ(trajectory({.initial_power = 8, .window = 2, .hysteresis = 1}, "x..x...x"),
            (std::vector<double>{128, 128, 128, 64, 64, 64, 128, 64}));
}

TEST(LossScale, GoesOnFromAStateAsIfItHadNotStopped) {
  const LossScaleOptions options{.initial_power = 6, .window = 3, .hysteresis = 2};
  LossScaler whole(options);
  trajectory(whole, "x..x.");
  LossScaler resumed(options, whole.state());
  EXPECT_EQ(trajectory(resumed, "...x....xx"), trajectory(whole, "...x....xx"));
  EXPECT_EQ(resumed.state(), whole.state());
}

TEST(LossScale, OptionsThatMakeNoSenseAreRefused) {
  EXPECT_THROW(LossScaler({.fixed = -1}), Error);
  EXPECT_THROW(LossScaler({.window = 0}), Error);
  EXPECT_THROW(LossScaler({.hysteresis = 0}), Error);
  EXPECT_THROW(LossScaler({.min_scale = 0}), Error);
  EXPECT_THROW(LossScaler({.initial_power = 2, .min_scale = 8}), Error);
}

}  // namespace
}  // namespace zeroth::arithmetic
