#include "plan/traffic.h"

#include "plan/test_support.h"
#include <gtest/gtest.h>

namespace zeroth::plan {
namespace {

constexpr std::int64_t kRanks = 4;

Traffic traffic_at(int stage, std::int64_t accumulation, const TestShape& shape = {}) {
  PlanInput input = on_ranks(input_for(shape), kRanks, stage);
  input.accumulation = accumulation;
  return traffic_of(input, size_of(input));
}

// Bytes that a rank sends when `bytes` of each of `elements` pass once over all ranks.
Bytes once(std::int64_t bytes, std::int64_t elements) {
  return Bytes(bytes * elements / kRanks * (kRanks - 1));
}

std::int64_t elements() {
  const PlanInput input = on_ranks(input_for({}), kRanks, 0);
  return size_of(input).padded;
}

TEST(Traffic, Stage0ReducesAndGathersTheSumsOnceAnUpdate) {
  for (const std::int64_t accumulation : {1, 8}) {
    const Traffic traffic = traffic_at(0, accumulation);
    EXPECT_EQ(traffic.gradients, once(4, elements()) * 2);
    EXPECT_EQ(traffic.weights, Bytes());
  }
}

TEST(Traffic, Stage1ReducesOnceAndGathersTheUpdatedWeights) {
  for (const std::int64_t accumulation : {1, 8}) {
    const Traffic traffic = traffic_at(1, accumulation);
    EXPECT_EQ(traffic.gradients, once(4, elements()));
    EXPECT_EQ(traffic.weights, once(2, elements()));
  }
}

TEST(Traffic, Stage2ReducesAtEveryMicroStep) {
  const Traffic traffic = traffic_at(2, 8);
  EXPECT_EQ(traffic.gradients, once(4, elements()) * 8);
  EXPECT_EQ(traffic.weights, once(2, elements()));
}

// The head stays gathered between its forward and its backward.
TEST(Traffic, Stage3GathersTwiceAMicroStepInsteadOfOnceAnUpdate) {
  const Traffic traffic = traffic_at(3, 8);
  const std::int64_t head = size_of(on_ranks(input_for({}), kRanks, 3)).units.back().padded;
  EXPECT_EQ(traffic.gradients, once(4, elements()) * 8);
  EXPECT_EQ(traffic.weights, once(2, 2 * elements() - head) * 8);
}

TEST(Traffic, SmallUnitsThatStayPassOnceAnUpdate) {
  PlanInput input = on_ranks(input_for({}), kRanks, 3);
  input.accumulation = 8;
  input.persistence_elements = std::int64_t{1} << 40;
  EXPECT_EQ(traffic_of(input, size_of(input)).weights, once(2, elements()));
}

TEST(Traffic, NarrowGradientsAreHalfAsManyBytes) {
  PlanInput input = on_ranks(input_for({}), kRanks, 2);
  input.communication_bytes = 2;
  EXPECT_EQ(traffic_of(input, size_of(input)).gradients, once(2, elements()));
}

// It has no weight of its own to gather, and gathers as much all the same.
TEST(Traffic, ATiedHeadGathersTheEmbeddingOnceMore) {
  const Traffic tied = traffic_at(3, 1, {.tied = true});
  EXPECT_EQ(tied.weights, traffic_at(3, 1).weights);
  EXPECT_LT(tied.gradients, traffic_at(3, 1).gradients);
}

TEST(Traffic, LoraSendsItsAdaptersAlone) {
  PlanInput input = on_ranks(input_for({}), kRanks, 3);
  const std::int64_t full = traffic_of(input, size_of(input)).total().count();
  input.lora = shapes::LoraSettings{.rank = 8};
  EXPECT_LT(traffic_of(input, size_of(input)).total().count(), full / 20);
}

TEST(Traffic, OneRankSendsNothing) {
  const PlanInput input = on_ranks(input_for({}), 1, 0);
  EXPECT_EQ(traffic_of(input, size_of(input)).total(), Bytes());
}

}  // namespace
}  // namespace zeroth::plan
