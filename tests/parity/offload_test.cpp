#include "base/error.h"
#include "parity/placements.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// Where state rests changes no bit.
namespace zeroth::parity {
namespace {

using memory::Purpose;

std::int64_t at_peak(const Outcome& outcome, Purpose purpose) {
  return outcome.at_peak[static_cast<std::size_t>(purpose)];
}

class Offload : public testing::TestWithParam<at::ScalarType> {};

INSTANTIATE_TEST_SUITE_P(Types,
                         Offload,
                         testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& test) { return std::string(c10::toString(test.param)); });

TEST_P(Offload, N20_FilesChangeNoBit) {
  for (const bool lora : {false, true}) {
    for (const int ranks : {1, 2}) {
      for (int stage = 0; stage <= 3; ++stage) {
        expect_same_bits_on_file({.stage = stage,
                                  .ranks = ranks,
                                  .micro_rows = 2,
                                  .lora = lora,
                                  .dtype = GetParam(),
                                  .updates = 2});
      }
    }
  }
}

TEST(OffloadRanks, FilesChangeNoBitOfThreeRanks) {
  expect_same_bits_on_file({.stage = 2, .ranks = 3, .micro_rows = 2, .updates = 3});
  expect_same_bits_on_file(
      {.stage = 3, .ranks = 3, .micro_rows = 1, .dtype = at::kHalf, .updates = 3});
}

// Sums are narrow where they are kept, or where they travel.
TEST(OffloadRanks, FilesChangeNoBitOfNarrowGradients) {
  for (const int ranks : {1, 2}) {
    for (const int stage : {1, 3}) {
      Case test{
          .stage = stage, .ranks = ranks, .micro_rows = 2, .dtype = at::kBFloat16, .updates = 2};
      test.tuning.grad_accum = comm::NumberType::kBFloat16;
      expect_same_bits_on_file(test);
      test.tuning.communication = comm::NumberType::kFloat16;
      test.tuning.grad_accum = comm::NumberType::kFloat32;
      expect_same_bits_on_file(test);
    }
  }
}

TEST(OffloadKnobs, OtherKnobsChangeNoBit) {
  Case test{.stage = 3, .ranks = 2, .micro_rows = 2, .updates = 3, .recompute = true};
  test.rule = Rule::kSgd;
  test.tuning.overlap = false;
  test.tuning.scatter = false;
  test.tuning.prefetch_elements = 500'000;
  expect_same_bits_on_file(test);
  test.tuning.overlap = true;
  test.tuning.persistence_elements = 16'390;  // the embedding stays, in memory
  test.reduce_every_micro_step = false;
  expect_same_bits_on_file(test);
}

// Eight pieces of a unit and more: reading, updating and writing take turns.
TEST(OffloadKnobs, SubGroupsStreamInManyPieces) {
  for (const int ranks : {1, 2}) {
    Case test{.stage = 3, .ranks = ranks, .micro_rows = 4, .dtype = at::kBFloat16, .updates = 3};
    test.tuning.sub_group_elements = 5000;  // two pages' elements each; units have 16,000 and more
    expect_same_bits_on_file(test);
    for (const auto& [ahead, behind] : {std::pair{false, false}, {true, false}, {false, true}}) {
      Case turns = resting(test, {true, true});
      turns.tuning.resting.reads_ahead = ahead;
      turns.tuning.resting.writes_behind = behind;
      expect_same_bits(run(test), run(turns));
    }
  }
}

TEST(OffloadKnobs, EveryWayOfMovingBytesGivesTheSame) {
  if (offload::make_uring_io({}) == nullptr) {
    GTEST_SKIP() << "needs io_uring";
  }
  const Case test{.stage = 3, .ranks = 2, .micro_rows = 2, .updates = 3};
  const Outcome in_memory = run(test);
  for (const std::int64_t depth : {1, 128}) {
    for (const bool refills : {false, true}) {
      Case on_file = resting(test, {true, true});
      on_file.tuning.resting.io_kind = offload::IoKind::kUring;
      on_file.tuning.resting.io = {
          .block_bytes = 4096, .depth = depth, .submits_singly = depth == 1, .refills = refills};
      expect_same_bits(in_memory, run(on_file));
    }
  }
}

TEST(OffloadMemory, StateOnFileIsNotInMemory) {
  for (const int ranks : {1, 2}) {
    const Case test{
        .stage = 3, .ranks = ranks, .micro_rows = 4, .dtype = at::kBFloat16, .updates = 2};
    const Outcome in_memory = run(test);
    const Outcome optimizer = run(resting(test, {true, false}));
    const Outcome both = run(resting(test, {true, true}));
    for (const Purpose purpose : {Purpose::kMaster, Purpose::kMoments, Purpose::kGradients}) {
      EXPECT_GT(at_peak(in_memory, purpose), 0);
      EXPECT_EQ(at_peak(optimizer, purpose), 0);
      EXPECT_EQ(at_peak(both, purpose), 0);
    }
    EXPECT_GT(at_peak(optimizer, Purpose::kWeights), 0);
    EXPECT_EQ(at_peak(both, Purpose::kWeights), 0);
  }
}

TEST(OffloadMemory, WholeGradientsStayWhereBackwardAddsThem) {
  for (const int stage : {0, 1}) {
    const Case test{.stage = stage, .ranks = 2, .micro_rows = 4, .updates = 2};
    const Outcome on_file = run(resting(test, {true, false}));
    EXPECT_EQ(at_peak(on_file, Purpose::kGradients), at_peak(run(test), Purpose::kGradients));
    EXPECT_EQ(at_peak(on_file, Purpose::kMoments), 0);
  }
}

// Each update reads and writes what an optimizer must: AdamW's two moments and the master; with
// weights and gradients on file also these.
TEST(OffloadMemory, EachUpdateMovesItsState) {
  Case test{.stage = 3, .ranks = 1, .micro_rows = 8, .dtype = at::kBFloat16};
  const auto moved = [&](int updates) {
    test.updates = updates;
    return run(resting(test, {true, true})).offloaded;
  };
  const offload::Traffic one = moved(1);
  const offload::Traffic two = moved(2);
  test.updates = 1;
  const std::int64_t elements = run(test).trainable;
  const auto expect_about = [&](std::int64_t bytes, std::int64_t per_element) {
    const std::int64_t pages = 6 * 64 * offload::kAlignment;  // whole pages, of each array
    EXPECT_GE(bytes, per_element * elements);
    EXPECT_LE(bytes, per_element * elements + pages);
  };
  expect_about(two.read - one.read, 12 + 4 + 2 * 2);  // state, gradients, weights twice
  expect_about(two.written - one.written, 12 + 4 + 2);
}

TEST(OffloadMemory, AShareOfTheStateMayStay) {
  const Case test{.stage = 2, .ranks = 2, .micro_rows = 4, .updates = 2};
  const Outcome in_memory = run(test);
  Case half = resting(test, {true, false});
  half.tuning.resting.optimizer_share = 0.5;
  const Outcome outcome = run(half);
  expect_same_bits(in_memory, outcome);
  const std::int64_t moments = at_peak(outcome, Purpose::kMoments);
  EXPECT_GT(moments, at_peak(in_memory, Purpose::kMoments) / 4);
  EXPECT_LT(moments, at_peak(in_memory, Purpose::kMoments) * 3 / 4);
}

TEST(OffloadMemory, SomeWeightsMayStay) {
  const Case test{.stage = 3, .ranks = 2, .micro_rows = 4, .updates = 2};
  const Outcome in_memory = run(test);
  Case some = resting(test, {false, true});
  some.tuning.resting.parameters_kept = at_peak(in_memory, Purpose::kWeights) / 4 / 2;
  const Outcome outcome = run(some);
  expect_same_bits(in_memory, outcome);
  EXPECT_GT(at_peak(outcome, Purpose::kWeights), 0);
  EXPECT_LE(at_peak(outcome, Purpose::kWeights), at_peak(in_memory, Purpose::kWeights) / 2);
}

TEST(OffloadMemory, OneBufferIsEnough) {
  const Case test{.stage = 3, .ranks = 2, .micro_rows = 4, .updates = 2};
  Case one = resting(test, {false, true});
  const Outcome several = run(one);
  one.tuning.resting.parameter_buffers = 1;
  const Outcome outcome = run(one);
  expect_same_bits(run(test), outcome);
  EXPECT_LT(at_peak(outcome, Purpose::kBuffers), at_peak(several, Purpose::kBuffers));
}

TEST(OffloadErrors, NormsOfWholeParametersNeedThemInMemory) {
  for (const Places& places : kOnFile) {
    Case test = resting({.stage = 3, .ranks = 2, .rule = Rule::kLamb}, places);
    try {
      (void)run(test);
      FAIL() << "LAMB on state that rests on file";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kConfig);
      EXPECT_NE(std::string(error.what()).find("LAMB"), std::string::npos);
    }
  }
}

TEST(OffloadErrors, AFolderThatIsNoneIsNamed) {
  Case test = resting({.stage = 3, .ranks = 2}, {true, true});
  test.tuning.resting.optimizer_folder = "/no/such/folder";
  try {
    (void)run(test);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("/no/such/folder does not exist"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace zeroth::parity
