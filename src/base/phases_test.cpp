#include "base/phases.h"

#include <thread>

#include <gtest/gtest.h>

namespace zeroth {
namespace {

void pass(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST(Phases, AMomentCountsForTheInnermostPhaseAlone) {
  start_phases();
  {
    const PhaseScope optimizer(Phase::kOptimizer);
    pass(20);
    {
      const PhaseScope collectives(Phase::kCollectives);
      pass(40);
    }
    pass(20);
  }
  const PhaseSeconds seconds = finish_phases();
  EXPECT_GE(seconds.of(Phase::kOptimizer), 0.040);
  EXPECT_GE(seconds.of(Phase::kCollectives), 0.040);
  EXPECT_EQ(seconds.of(Phase::kProducts), 0);
  EXPECT_NEAR(
      seconds.total(),
      seconds.of(Phase::kOptimizer) + seconds.of(Phase::kCollectives) + seconds.of(Phase::kOther),
      1e-12);
}

TEST(Phases, ProductsInsideAttentionAreAttentions) {
  start_phases();
  {
    const PhaseScope attention(Phase::kAttention);
    const PhaseScope product(Phase::kProducts);
    pass(5);
  }
  {
    const PhaseScope product(Phase::kProducts);
    pass(5);
  }
  const PhaseSeconds seconds = finish_phases();
  EXPECT_GE(seconds.of(Phase::kAttention), 0.005);
  EXPECT_GE(seconds.of(Phase::kProducts), 0.005);
}

TEST(Phases, NothingIsMeasuredWhereNobodyAsked) {
  {
    const PhaseScope product(Phase::kProducts);
    start_phases();  // within a scope that does not know of it
    pass(5);
  }
  const PhaseSeconds seconds = finish_phases();
  EXPECT_EQ(seconds.of(Phase::kProducts), 0);
  EXPECT_GE(seconds.of(Phase::kOther), 0.005);
}

}  // namespace
}  // namespace zeroth
