#include "plan/states.h"

#include <array>

#include "base/error.h"
#include "plan/needs.h"
#include "plan/test_support.h"
#include <gtest/gtest.h>

namespace zeroth::plan {
namespace {

// A model of `parameters` elements that need no padding, as if it were one unit.
ModelSize whole_model(std::int64_t parameters, std::int64_t ranks) {
  return {.trainable = parameters, .padded = parameters, .shard = parameters / ranks};
}

std::int64_t state_bytes(const PlanInput& input, std::int64_t parameters) {
  return states_of(input, whole_model(parameters, input.ranks)).total().count();
}

// The published table (DeepSpeed's documentation of ZeRO), times N, so that it is in integers.
struct StageBytes {
  std::int64_t fixed;    // bytes per parameter that every rank holds
  std::int64_t sharded;  // bytes per parameter that the ranks divide
};

constexpr std::array<StageBytes, 4> kWithoutWideSums{{{16, 0}, {4, 12}, {2, 14}, {0, 16}}};
constexpr std::array<StageBytes, 4> kWithWideSums{{{18, 0}, {6, 12}, {2, 16}, {0, 18}}};
constexpr std::array<StageBytes, 4> kFp32{{{16, 0}, {8, 8}, {4, 12}, {0, 16}}};

void expect_table(const std::array<StageBytes, 4>& table, PlanInput input) {
  for (const std::int64_t ranks : {2, 4, 8, 64, 1024, 16384}) {
    const std::int64_t parameters = 2851 * ranks * 1000;
    for (int stage = 0; stage < 4; ++stage) {
      const StageBytes& bytes = table[static_cast<std::size_t>(stage)];
      EXPECT_EQ(state_bytes(on_ranks(input, ranks, stage), parameters),
                bytes.fixed * parameters + bytes.sharded * parameters / ranks)
          << "stage " << stage << " on " << ranks;
    }
  }
}

TEST(States, MixedPrecisionIsThePublishedTable) {
  PlanInput input = input_for({});
  input.gradient_bytes = 2;
  expect_table(kWithoutWideSums, input);
}

TEST(States, SumsInFp32AddTwoBytesMoreThan16BitOnes) {
  expect_table(kWithWideSums, input_for({}));
}

TEST(States, Fp32WeightsAreTheirOwnMaster) {
  PlanInput input = input_for({});
  input.compute_bytes = 4;
  expect_table(kFp32, input);
}

// The example that DeepSpeed's memory estimators were published with.
TEST(States, AModelOf2851MillionOnEightDevices) {
  constexpr std::int64_t kParameters = 2'851'000'000;
  PlanInput input = input_for({});
  input.gradient_bytes = 2;
  EXPECT_EQ(state_bytes(on_ranks(input, 8, 0), kParameters), 45'616'000'000);
  EXPECT_EQ(state_bytes(on_ranks(input, 8, 1), kParameters), 15'680'500'000);
  EXPECT_EQ(state_bytes(on_ranks(input, 8, 2), kParameters), 10'691'250'000);
  EXPECT_EQ(state_bytes(on_ranks(input, 8, 3), kParameters), 5'702'000'000);
}

TEST(States, OptimizersKeepDifferentNumbersOfMoments) {
  PlanInput input = input_for({});
  for (const std::int64_t moments : {0, 1, 2}) {
    input.num_moments = moments;
    EXPECT_EQ(states_of(input, whole_model(1000, 1)).moments, Bytes(4000 * moments));
  }
}

TEST(States, OneRankHasNobodyToShareWith) {
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(state_bytes(on_ranks(input_for({}), 1, stage), 1000), 18'000) << stage;
  }
}

TEST(States, TheCadenceOfReductionDecidesWhereGradientsLie) {
  PlanInput input = on_ranks(input_for({}), 4, 1);
  const ModelSize model = whole_model(4000, 4);
  input.reduce_every_micro_step = true;
  EXPECT_EQ(states_of(input, model).gradients, Bytes(4 * 1000));  // as stage 2
  input.stage = 0;
  EXPECT_EQ(states_of(input, model).gradients, Bytes(4 * 4000));  // stage 0 shards nothing
  input.reduce_every_micro_step = false;
  for (const int stage : {2, 3}) {
    input.stage = stage;
    EXPECT_EQ(states_of(input, model).gradients, Bytes(4 * 4000)) << stage;  // as stage 1
    EXPECT_EQ(gradient_slots(input, model), Bytes()) << stage;
  }
}

PlanInput lora_input() {
  PlanInput input = input_for({});
  input.lora = shapes::LoraSettings{.rank = 8};
  return input;
}

// Twelve bytes a trainable parameter over all ranks, padding aside, however many are frozen.
TEST(States, M01OptimizerMemoryIsForWhatTrains) {
  for (const int stage : {1, 2, 3}) {
    const PlanInput input = on_ranks(lora_input(), 4, stage);
    const ModelSize model = size_of(input);
    const StateBytes states = states_of(input, model);
    const std::int64_t all = (states.master + states.moments).count() * 4;
    const auto padding = static_cast<std::int64_t>(model.units.size()) * 4 * 16 * 12;
    EXPECT_GE(all, 12 * model.trainable);
    EXPECT_LE(all, 12 * model.trainable + padding);
    EXPECT_GT(model.frozen, 20 * model.trainable);
  }
}

TEST(States, FrozenWeightsCostTheirWeightsOnlyWholeAtEveryStage) {
  for (int stage = 0; stage < 4; ++stage) {
    PlanInput input = on_ranks(lora_input(), 4, stage);
    const ModelSize model = size_of(input);
    const std::int64_t trained = stage == 3 ? model.shard : model.padded;
    EXPECT_EQ(states_of(input, model).weights, Bytes(2 * (model.frozen + trained))) << stage;
    input.share_frozen = true;
    EXPECT_EQ(states_of(input, model).weights, Bytes(model.frozen / 2) + Bytes(2 * trained))
        << stage;
  }
}

TEST(States, AUnitIsPaddedByItself) {
  TestShape shape{.layers = 2};
  shape.inner = 763;  // odd sizes
  const PlanInput input = on_ranks(input_for(shape), 3, 1);
  const ModelSize model = size_of(input);
  std::int64_t padded = 0;
  for (const UnitSize& unit : model.units) {
    EXPECT_EQ(unit.padded % (3 * 16), 0);
    EXPECT_LT(unit.padded - unit.trainable, 3 * 16);
    padded += unit.padded;
  }
  EXPECT_EQ(model.padded, padded);
  EXPECT_EQ(model.shard * 3, padded);
}

TEST(Window, HasASlotMoreWhereAUnitBorrows) {
  TestShape shape{.vocabulary = 50'000};
  const PlanInput untied = on_ranks(input_for(shape), 4, 3);
  const std::int64_t largest = 50'000 * 256;
  EXPECT_EQ(gather_window(untied, size_of(untied)), share_of(Bytes(2 * 2 * (largest + 256)), 4));
  shape.tied = true;
  const PlanInput tied = on_ranks(input_for(shape), 4, 3);
  EXPECT_EQ(gather_window(tied, size_of(tied)), Bytes(3 * 2 * largest / 4));
}

TEST(Window, IsSharedByTheRanksOfAHostAndWholeOnADevice) {
  PlanInput input = on_ranks(input_for({}), 16, 3);  // two hosts of eight
  const ModelSize model = size_of(input);
  const Bytes shared = gather_window(input, model);
  input.own_memory = true;
  EXPECT_EQ(gather_window(input, model), shared * 8);
  input.stage = 2;
  EXPECT_EQ(gather_window(input, model), Bytes());
}

TEST(Size, M07NothingTrainedIsAnError) {
  EXPECT_THROW(require_trainable({}), Error);
  PlanInput input = input_for({});
  input.lora = shapes::LoraSettings{.rank = 8, .target_modules = {"no_such_proj"}};
  EXPECT_THROW((void)size_of(input), Error);
}

}  // namespace
}  // namespace zeroth::plan
