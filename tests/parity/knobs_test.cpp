#include "parity/runs.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// Every setting of the ZeRO block that acts: what it changes in bytes or traffic, and that it
// changes no bit (but for the two number types).
namespace zeroth::parity {
namespace {

using memory::Purpose;

std::int64_t at_peak(const Outcome& outcome, Purpose purpose) {
  return outcome.at_peak[static_cast<std::size_t>(purpose)];
}

Case two_ranks(int stage, std::int64_t micro_rows = 2) {
  return {.stage = stage, .ranks = 2, .micro_rows = micro_rows, .updates = 3};
}

// Where in the last update's events the first of this text stands.
std::size_t place_of(const Outcome& outcome, const std::string& event, std::size_t from = 0) {
  for (std::size_t i = from; i < outcome.events.size(); ++i) {
    if (outcome.events[i].starts_with(event)) {
      return i;
    }
  }
  return outcome.events.size();
}

TEST(Knobs, ReduceBucketSizeCutsReductions) {
  for (const int stage : {0, 1, 2, 3}) {
    Case test = two_ranks(stage);
    const Outcome whole = run(test);
    test.tuning.reduce_bucket_elements = 5000;
    const Outcome cut = run(test);
    expect_same_bits(whole, cut);
    EXPECT_GT(cut.sent.at("reduce_scatter gradients").calls,
              2 * whole.sent.at("reduce_scatter gradients").calls);
    EXPECT_EQ(cut.sent.at("reduce_scatter gradients").bytes,
              whole.sent.at("reduce_scatter gradients").bytes);
  }
}

TEST(Knobs, AllgatherBucketSizeCutsGathersOfUpdatedWeights) {
  for (const int stage : {1, 2}) {
    Case test = two_ranks(stage);
    const Outcome whole = run(test);
    test.tuning.allgather_bucket_elements = 4000;
    const Outcome cut = run(test);
    expect_same_bits(whole, cut);
    EXPECT_EQ(whole.sent.at("all_gather updated weights").calls, 6);  // one for each unit
    EXPECT_GT(cut.sent.at("all_gather updated weights").calls, 12);
    EXPECT_EQ(cut.sent.at("all_gather updated weights").bytes,
              whole.sent.at("all_gather updated weights").bytes);
  }
}

TEST(Knobs, OverlapCommWaitsLater) {
  for (const int stage : {1, 2, 3}) {
    Case test = two_ranks(stage, 4);
    const Outcome overlapped = run(test);
    test.tuning.overlap = false;
    const Outcome blocking = run(test);
    expect_same_bits(overlapped, blocking);
    // Blocking: what was started is waited for before anything else is.
    for (const char* unit : {"gradients of head", "gradients of layers.3"}) {
      const std::size_t start = place_of(blocking, std::string("start reduce_scatter ") + unit);
      ASSERT_LT(start + 1, blocking.events.size());
      EXPECT_EQ(blocking.events[start + 1], std::string("waited reduce_scatter ") + unit);
    }
    // Overlapped: the next unit's backward, and so its reduction, comes between.
    const std::size_t next = place_of(overlapped, "start reduce_scatter gradients of layers.3");
    EXPECT_LT(next, place_of(overlapped, "waited reduce_scatter gradients of head"));
  }
}

TEST(Knobs, OverlapCommHoldsASecondBuffer) {
  Case test = two_ranks(2);
  const std::int64_t overlapped = at_peak(run(test), Purpose::kBuffers);
  test.tuning.overlap = false;
  EXPECT_LT(at_peak(run(test), Purpose::kBuffers), overlapped);
}

TEST(Knobs, ReduceScatterOffBringsEverySumToEveryRank) {
  for (const int stage : {1, 2, 3}) {
    Case test = two_ranks(stage);
    const Outcome scattered = run(test);
    test.tuning.scatter = false;
    const Outcome spread = run(test);
    expect_same_bits(scattered, spread);
    EXPECT_FALSE(scattered.sent.contains("all_gather sums"));
    EXPECT_EQ(2 * spread.sent.at("all_gather sums").bytes,
              spread.sent.at("reduce_scatter gradients").bytes);
  }
}

TEST(Knobs, PrefetchBucketSizeDecidesHowFarAhead) {
  Case test = two_ranks(3, 4);
  const Outcome next = run(test);
  test.tuning.prefetch_elements = 0;
  const Outcome none = run(test);
  test.tuning.prefetch_elements = 500'000;
  const Outcome far = run(test);
  expect_same_bits(next, none);
  expect_same_bits(next, far);
  const auto ahead = [](const Outcome& outcome) {  // gathers under way before the first is used
    return place_of(outcome, "waited all_gather weights");
  };
  EXPECT_EQ(ahead(none), 1U);
  EXPECT_EQ(ahead(next), 2U);
  EXPECT_EQ(ahead(far), 4U);  // half of the six units
  EXPECT_LT(at_peak(none, Purpose::kGatherWindow), at_peak(next, Purpose::kGatherWindow));
  EXPECT_LT(at_peak(next, Purpose::kGatherWindow), at_peak(far, Purpose::kGatherWindow));
}

TEST(Knobs, MaxLiveParametersHoldsPrefetchBack) {
  Case test = two_ranks(3, 4);
  test.tuning.prefetch_elements = 500'000;
  const Outcome free = run(test);
  test.tuning.max_live_elements = 1;
  const Outcome held = run(test);
  expect_same_bits(free, held);
  EXPECT_EQ(place_of(held, "waited all_gather weights"), 1U);
  EXPECT_LT(at_peak(held, Purpose::kGatherWindow), at_peak(free, Purpose::kGatherWindow));
}

TEST(Knobs, ParamPersistenceThresholdKeepsSmallUnitsGathered) {
  Case test = two_ranks(3, 2);
  const Outcome passing = run(test);
  test.tuning.persistence_elements = 1'000'000;
  const Outcome kept = run(test);
  expect_same_bits(passing, kept);
  EXPECT_FALSE(kept.sent.contains("all_gather weights"));
  EXPECT_EQ(kept.sent.at("all_gather updated weights").calls, 6);  // once an update
  EXPECT_GT(passing.sent.at("all_gather weights").calls, 12);      // twice a micro-step
  test.tuning.persistence_elements = 16'390;                       // the embedding alone
  const Outcome some = run(test);
  expect_same_bits(passing, some);
  EXPECT_EQ(some.sent.at("all_gather updated weights").calls, 1);
}

TEST(Knobs, SubGroupSizeBoundsTheOptimizersPieces) {
  Case test = two_ranks(2);
  test.tuning.grad_accum = comm::NumberType::kBFloat16;
  const Outcome whole = run(test);
  test.tuning.sub_group_elements = 1000;
  expect_same_bits(whole, run(test));
}

TEST(Knobs, CommunicationDataTypeHalvesTheBytes) {
  for (const int stage : {0, 1, 2, 3}) {
    Case test = two_ranks(stage);
    test.dtype = at::kBFloat16;
    const Outcome wide = run(test);
    test.tuning.communication = comm::NumberType::kBFloat16;
    const Outcome narrow = run(test);
    EXPECT_EQ(2 * narrow.sent.at("reduce_scatter gradients").bytes,
              wide.sent.at("reduce_scatter gradients").bytes);
    EXPECT_LT(relative_norm(narrow.weights, wide.weights), 1e-3);
  }
}

// Contract 3: 16, 4 + 12/N, 2 + 14/N, 16/N bytes without the fp32 sums.
TEST(Knobs, GradAccumDtypeSavesTwoBytesAParameter) {
  const std::vector<double> expected{16.0, 4.0 + 12.0 / 2, 2.0 + 14.0 / 2, 16.0 / 2};
  for (const int stage : {0, 1, 2, 3}) {
    Case test = two_ranks(stage);
    test.dtype = at::kBFloat16;
    test.tuning.grad_accum = comm::NumberType::kBFloat16;
    const Outcome outcome = run(test);
    const double bytes =
        static_cast<double>(outcome.model_state_bytes) / static_cast<double>(outcome.trainable);
    EXPECT_NEAR(bytes / expected[static_cast<std::size_t>(stage)], 1.0, 0.02) << stage;
    test.tuning.grad_accum = comm::NumberType::kFloat32;
    EXPECT_LT(relative_norm(outcome.weights, run(test).weights), 2e-3);
  }
}

TEST(Knobs, ReduceEveryMicroStepMakesAllStagesAgree) {
  Case test = two_ranks(0, 1);
  test.reduce_every_micro_step = true;
  const Outcome zero = run(test);
  for (test.stage = 1; test.stage <= 3; ++test.stage) {
    expect_same_bits(zero, run(test));
  }
  EXPECT_EQ(zero.sent.at("reduce_scatter gradients").calls, 4 * 6);  // micro-steps times units
}

// M06: whole gradients wait for the window's end, at the cost of their memory.
TEST(M06, ReductionAtTheWindowsEndOnlyKeepsWholeGradients) {
  for (const int stage : {2, 3}) {
    Case test = two_ranks(stage, 1);
    const Outcome sharded = run(test);
    test.reduce_every_micro_step = false;
    const Outcome whole = run(test);
    EXPECT_EQ(whole.sent.at("reduce_scatter gradients").calls, 6);
    EXPECT_EQ(sharded.sent.at("reduce_scatter gradients").calls, 24);
    EXPECT_NEAR(static_cast<double>(at_peak(whole, Purpose::kGradients)) /
                    static_cast<double>(at_peak(sharded, Purpose::kGradients)),
                2.0,
                0.05);
    test.stage = 1;
    test.reduce_every_micro_step.reset();
    expect_same_bits(whole, run(test));
  }
}

// The peak of gradients does not grow with accumulation.
TEST(M06, AccumulationNeedsNoGradientMemory) {
  for (const int stage : {0, 1, 2, 3}) {
    const Outcome once = run(two_ranks(stage, 4));
    const Outcome four_times = run(two_ranks(stage, 1));
    EXPECT_EQ(at_peak(once, Purpose::kGradients), at_peak(four_times, Purpose::kGradients));
  }
}

// Buckets are no larger than the model: stage 2 never needs more than stage 1 and its slots.
TEST(M02, Stage2NeedsNoMoreThanStage1ButForItsSlots) {
  const auto states = [](const Outcome& outcome) { return outcome.model_state_bytes; };
  const Outcome one = run(two_ranks(1));
  const Outcome two = run(two_ranks(2));
  EXPECT_LT(states(two), states(one));
  EXPECT_LE(at_peak(two, Purpose::kBuffers), 3 * 4 * two.trainable);
}

TEST(M01, LoraStateIsOfItsTrainableParametersAlone) {
  for (const int stage : {1, 2, 3}) {
    Case test = two_ranks(stage);
    test.lora = true;
    const Outcome outcome = run(test);
    const auto moments = static_cast<double>(at_peak(outcome, Purpose::kMoments));
    EXPECT_NEAR(moments * 2 / static_cast<double>(8 * outcome.trainable), 1.0, 0.05);
  }
}

// No rank holds all trainable weights at stage 3: its shard, and the slots of the window.
TEST(Stage3, NeverHoldsTheWholeModel) {
  const Outcome outcome = run(two_ranks(3));
  const std::int64_t whole = 4 * outcome.trainable;
  const std::int64_t window = 2 * at_peak(outcome, Purpose::kGatherWindow);  // shared by two ranks
  EXPECT_LT(window, whole);
  EXPECT_LE(at_peak(outcome, Purpose::kWeights), whole * 51 / 100);
}

TEST(Lamb, RatiosAreOfWholeParametersUnderEveryStage) {
  Case test{.ranks = 2, .micro_rows = 4, .rule = Rule::kLamb, .updates = 5};
  const Outcome reference = run({.rule = Rule::kLamb, .updates = 5});
  const Outcome first = run(test);
  expect_near(first, reference, 1e-5);
  for (test.stage = 1; test.stage <= 3; ++test.stage) {
    expect_same_bits(first, run(test));
  }
  test.ranks = 4;
  test.micro_rows = 2;
  test.stage = 2;
  expect_near(run(test), reference, 1e-5);
}

}  // namespace
}  // namespace zeroth::parity
