#include "plan/plan.h"

#include <algorithm>
#include <limits>

#include "plan/report.h"
#include "plan/test_support.h"
#include <gtest/gtest.h>

namespace zeroth::plan {
namespace {

constexpr std::int64_t kGi = std::int64_t{1} << 30;

PlanInput story() {
  PlanInput input = on_ranks(input_for(kLlama3), 4, 0);
  input.lora = shapes::LoraSettings{.rank = 8};
  input.own_memory = true;
  input.accumulation = 8;
  input.row_tokens = 2048;
  return input;
}

Budget device(std::int64_t bytes) {
  return {.device = Bytes(bytes), .host = std::nullopt, .disk = {}};
}

const Choice& row(const Plan& plan, int stage, const Offload& offload = {}) {
  for (const Choice& choice : plan.table) {
    if (choice.stage == stage && choice.offload == offload) {
      return choice;
    }
  }
  ADD_FAILURE() << "no row of stage " << stage;
  return plan.table.front();
}

constexpr Offload kOptimizerToHost{.optimizer = Place::kHost};
constexpr Offload kAllToHost{.optimizer = Place::kHost, .parameters = Place::kHost};
constexpr Offload kAllToFiles{.optimizer = Place::kFiles, .parameters = Place::kFiles};

TEST(Plan, OfTheStoryFitsAndSaysHowManyRows) {
  const Plan plan = make_plan(story(), device(80 * kGi));
  EXPECT_EQ(plan.parameters, 8'030'261'248 + 20'971'520);
  EXPECT_EQ(plan.trainable, 20'971'520);
  EXPECT_TRUE(plan.chosen.fits);
  EXPECT_EQ(plan.chosen.largest_micro_batch, 7);
  PlanInput eight_rows = story();
  eight_rows.micro_batch_rows = 8;  // what the story's file would have meant
  EXPECT_FALSE(make_plan(eight_rows, device(80 * kGi)).chosen.fits);
}

TEST(Plan, AccumulationNeverChangesMemory) {
  for (int stage = 0; stage < 4; ++stage) {
    PlanInput input = story();
    input.stage = stage;
    const Plan eight = make_plan(input, device(80 * kGi));
    input.accumulation = 1;
    const Plan one = make_plan(input, device(80 * kGi));
    EXPECT_EQ(eight.chosen.needs.device.total(), one.chosen.needs.device.total()) << stage;
    EXPECT_EQ(eight.chosen.largest_micro_batch, one.chosen.largest_micro_batch) << stage;
  }
}

TEST(Plan, OneRowMoreThanTheLargestMicroBatchDoesNotFit) {
  for (const Choice& choice : make_plan(story(), device(60 * kGi)).table) {
    PlanInput input = story();
    input.stage = choice.stage;
    input.offload = choice.offload;
    const ModelSize model = size_of(input);
    for (const std::int64_t more : {0, 1}) {
      input.micro_batch_rows = choice.largest_micro_batch + more;
      EXPECT_EQ(needs_of(input, model).device.total() <= Bytes(60 * kGi), more == 0)
          << choice.stage << " " << offload_name(choice.offload);
    }
  }
}

TEST(Plan, WhereNotEvenOneRowFitsTheLargestIsZero) {
  const Plan plan = make_plan(story(), device(10 * kGi));
  EXPECT_FALSE(plan.chosen.fits);
  EXPECT_EQ(plan.chosen.largest_micro_batch, 0);
}

TEST(Plan, TheTableHasEveryStageWithEveryOffload) {
  const Plan plan = make_plan(story(), device(80 * kGi));
  EXPECT_EQ(plan.table.size(), 17U);  // at stage 3 weights may go to files as well
  for (int stage = 0; stage < 4; ++stage) {
    EXPECT_EQ(row(plan, stage).status, Status::kBuilt);
    EXPECT_EQ(row(plan, stage, kOptimizerToHost).status, Status::kPlanned);
    EXPECT_EQ(row(plan, stage, kAllToHost).status,
              stage == 3 ? Status::kPlanned : Status::kNoEffect);
  }
  EXPECT_EQ(row(plan, 3, kAllToFiles).status, Status::kBuilt);
  EXPECT_EQ(row(plan, 2, {.optimizer = Place::kFiles}).status, Status::kBuilt);
}

TEST(Plan, OffloadMovesStateAndLosesNone) {
  PlanInput input = on_ranks(input_for(kLlama3), 8, 3);
  input.own_memory = true;
  const Plan plan = make_plan(input, device(80 * kGi));
  const Needs& here = row(plan, 3).needs;
  const Needs& away = row(plan, 3, kOptimizerToHost).needs;
  EXPECT_EQ(away.device.total() + away.host, here.device.total());
  EXPECT_EQ(away.host,
            here.device.states.master + here.device.states.moments + here.device.states.gradients);
  const Needs& all_away = row(plan, 3, kAllToHost).needs;
  EXPECT_EQ(all_away.device.states.total(), Bytes());
  EXPECT_EQ(all_away.host, here.device.states.total());
  const Needs& in_files = row(plan, 3, kAllToFiles).needs;
  EXPECT_EQ(in_files.files, here.device.states.total());
  EXPECT_LT(in_files.host * 2, all_away.host);
}

TEST(Plan, WholeGradientsStayOnTheDevice) {
  PlanInput input = on_ranks(input_for({}), 8, 1);
  input.own_memory = true;
  const Plan plan = make_plan(input, device(kGi));
  EXPECT_EQ(row(plan, 1, kOptimizerToHost).needs.device.states.gradients,
            row(plan, 1).needs.device.states.gradients);
}

TEST(Plan, WhereRanksShareTheHostsMemoryNothingMovesThere) {
  PlanInput input = story();
  input.own_memory = false;
  const Plan plan = make_plan(input, device(80 * kGi));
  for (const Offload& offload : {kOptimizerToHost, kAllToHost}) {
    const Choice& choice = row(plan, 3, offload);
    EXPECT_EQ(choice.status, Status::kNoEffect);
    EXPECT_EQ(choice.why, "device memory is host memory here");
    EXPECT_EQ(choice.needs.device.total(), row(plan, 3).needs.device.total());
  }
  EXPECT_EQ(row(plan, 3, kAllToFiles).status, Status::kBuilt);
}

TEST(Plan, AHostThatIsTooSmallIsSeen) {
  PlanInput input = on_ranks(input_for(kLlama3), 8, 3);
  input.own_memory = true;
  input.offload = kAllToHost;
  const std::int64_t needed = make_plan(input, device(80 * kGi)).chosen.needs.host.count();
  for (const std::int64_t missing : {0, 1}) {
    const Plan plan = make_plan(
        input, {.device = Bytes(80 * kGi), .host = Bytes(8 * needed - missing), .disk = {}});
    EXPECT_EQ(plan.chosen.fits, missing == 0);
    EXPECT_EQ(plan.chosen.largest_micro_batch > 0, missing == 0);
  }
}

TEST(Plan, OneRankHasStagesOnlyForWhatFilesHold) {
  PlanInput input = story();
  input.ranks = input.ranks_per_node = 1;
  const Plan plan = make_plan(input, device(80 * kGi));
  EXPECT_EQ(plan.table.size(), 6U);  // four offloads at stage 0, gradients at 2, weights at 3
  EXPECT_EQ(row(plan, 3, kAllToFiles).needs.device.states.moments, Bytes());
}

TEST(Plan, MoreShardingNeedsLess) {
  PlanInput input = on_ranks(input_for(kLlama3), 64, 0);
  input.own_memory = true;
  const Plan plan = make_plan(input, device(80 * kGi));
  for (int stage = 1; stage < 4; ++stage) {
    EXPECT_LT(row(plan, stage).needs.device.total(), row(plan, stage - 1).needs.device.total());
  }
}

// The slots for gradients on their way are the only thing that stage 2 adds; a bucket of 5e8
// elements takes no memory.
TEST(Plan, M02Stage2NeedsAtMostItsSlotsMoreThanStage1) {
  for (const std::int64_t layers : {1, 4, 32}) {
    const PlanInput input = on_ranks(input_for({.layers = layers}), 2, 2);
    const ModelSize model = size_of(input);
    const Plan plan = make_plan(input, device(kGi));
    EXPECT_LE(row(plan, 2).needs.device.total(),
              row(plan, 1).needs.device.total() + gradient_slots(input, model));
    EXPECT_EQ(gradient_slots(input, model), Bytes(2 * 4 * model.largest_padded));
  }
}

// 128 layers of hidden size 25600: a trillion parameters.
PlanInput a_trillion(std::int64_t ranks) {
  PlanInput input = on_ranks(input_for({.hidden = 25600,
                                        .inner = 68352,
                                        .layers = 128,
                                        .heads = 200,
                                        .key_heads = 200,
                                        .head_dim = 128,
                                        .vocabulary = 128256}),
                             ranks,
                             3);
  input.own_memory = true;
  input.row_tokens = 8192;
  return input;
}

TEST(Plan, ATrillionParametersOnManyDevices) {
  for (const std::int64_t ranks : {8, 1024, 16384}) {
    const Plan plan = make_plan(a_trillion(ranks), device(80 * kGi));
    EXPECT_GT(plan.parameters, 1'000'000'000'000);
    const DeviceBytes& bytes = plan.chosen.needs.device;
    const double per_rank =
        18.0 * static_cast<double>(plan.parameters) / static_cast<double>(ranks);
    EXPECT_NEAR(static_cast<double>(bytes.states.total().count()) / per_rank, 1, 0.001);
    EXPECT_NEAR(static_cast<double>(row(plan, 0).needs.device.states.total().count()) / 18,
                static_cast<double>(plan.parameters),
                1e9);
    for (const Choice& choice : plan.table) {
      EXPECT_GT(choice.needs.device.total(), Bytes());
      EXPECT_LT(choice.needs.device.total().count(), std::numeric_limits<std::int64_t>::max());
    }
    EXPECT_GT(plan.chosen.traffic.total(), Bytes());
  }
}

TEST(Report, TheParts) {
  const Plan plan = make_plan(story(), device(80 * kGi));
  const Json json = to_json(plan);
  std::int64_t sum = 0;
  for (const auto& [name, bytes] : json["bytes_per_rank"].items()) {
    EXPECT_GE(bytes, 0) << name;
    sum += bytes.get<std::int64_t>();
  }
  EXPECT_EQ(json["bytes_per_rank"].size(), 8U);
  EXPECT_EQ(json["total"], sum);
  EXPECT_EQ(json["fits"], true);
  EXPECT_EQ(json["largest_micro_batch"], 7);
  EXPECT_EQ(json["table"].size(), 17U);
}

TEST(Report, TheLineOfTheStartTableNamesWhatIsNotNothing) {
  const std::string line = memory_line(story());
  EXPECT_TRUE(
      line.starts_with("memory plan: 23.97 GiB per rank at the most, with rows of 2048 "
                       "tokens: weights 15.00 GiB, gradients 80.00 MiB, master"))
      << line;
  EXPECT_EQ(line.find("gather_window"), std::string::npos) << line;
  const Json json = memory_json(story());
  EXPECT_EQ(json["total"],
            make_plan(story(), device(80 * kGi)).chosen.needs.device.total().count());
}

TEST(Report, WhatTheEndOfARunNeedsBesidesIsSaid) {
  PlanInput tight = a_trillion(16384);
  tight.micro_batch_rows = tight.row_tokens = 1;  // hardly an activation
  tight.stage = 0;
  const auto says = [](const PlanInput& input) {
    const std::vector<std::string> notes = notes_of(make_plan(input, device(80 * kGi)));
    return std::any_of(notes.begin(), notes.end(), [](const std::string& note) {
      return note.starts_with("at the end");
    });
  };
  EXPECT_TRUE(says(tight));
  EXPECT_FALSE(says(story()));
}

}  // namespace
}  // namespace zeroth::plan
