#include "plan/files.h"

#include "plan/needs.h"
#include "plan/test_support.h"
#include <gtest/gtest.h>

namespace zeroth::plan {
namespace {

constexpr Offload kStateInFiles{.optimizer = Place::kFiles};
constexpr Offload kAllInFiles{.optimizer = Place::kFiles, .parameters = Place::kFiles};

PlanInput with(const Offload& offload, std::int64_t ranks = 2, int stage = 3) {
  PlanInput input = on_ranks(input_for({}), ranks, stage);
  input.offload = offload;
  return input;
}

TEST(Files, HoldWhatTheRankKeeps) {
  const ModelSize model = size_of(with({}));
  for (int stage = 0; stage <= 3; ++stage) {
    const InFiles files = in_files(with(kAllInFiles, 2, stage), model);
    EXPECT_EQ(files.optimizer, stage == 0 ? model.padded : model.shard) << stage;
    EXPECT_EQ(files.gradients, stage >= 2 ? model.shard : 0) << stage;
    EXPECT_EQ(files.parameters, stage == 3 ? model.shard : 0) << stage;
  }
}

TEST(Files, OfOneRankHoldItsWholeState) {
  const PlanInput alone = with(kAllInFiles, 1);
  const ModelSize model = size_of(alone);
  const InFiles files = in_files(alone, model);
  EXPECT_EQ(files.optimizer, model.padded);
  EXPECT_EQ(files.gradients, model.padded);
  EXPECT_EQ(files.parameters, model.padded);
  EXPECT_EQ(needs_of(alone, model).device.states.total(), Bytes());
}

// Twelve bytes of state are read and written, of sums and 16-bit weights what they are.
TEST(Files, AnUpdateMovesStateOnceAndWeightsTwiceAMicroStep) {
  PlanInput input = with(kAllInFiles);
  input.accumulation = 4;
  const ModelSize model = size_of(input);
  const std::int64_t walked = 2 * model.shard - model.units.back().padded / 2;
  const FileTraffic traffic = file_traffic(input, model);
  EXPECT_EQ(traffic.read.count(), 12 * model.shard + 4 * 4 * model.shard + 4 * 2 * walked);
  EXPECT_EQ(traffic.written.count(), 12 * model.shard + 4 * 4 * model.shard + 2 * model.shard);
  input.offload = {};
  EXPECT_EQ(file_traffic(input, model).read, Bytes());
}

TEST(Files, AShareMayStay) {
  PlanInput input = with(kStateInFiles);
  const ModelSize model = size_of(input);
  input.streaming.optimizer_share = 0.5;
  const std::int64_t half = in_files(input, model).optimizer;
  EXPECT_GT(half, model.shard / 4);
  EXPECT_LT(half, model.shard * 3 / 4);
  input.streaming.optimizer_share = 0;
  EXPECT_EQ(in_files(input, model).optimizer, 0);
  EXPECT_EQ(file_buffers(input, model), Bytes());
}

TEST(Files, BuffersFollowSubGroupsAndTheirNumber) {
  PlanInput input = with(kStateInFiles, 1, 1);
  const ModelSize model = size_of(input);
  input.streaming.sub_group_elements = 4096;
  EXPECT_EQ(file_buffers(input, model), Bytes(3 * 3 * 4 * 4096));  // master and two moments
  input.streaming.reads_ahead = false;
  EXPECT_EQ(file_buffers(input, model), Bytes(2 * 3 * 4 * 4096));
}

}  // namespace
}  // namespace zeroth::plan
