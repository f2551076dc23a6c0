#include "plan/proposal.h"

#include <filesystem>

#include "base/file.h"
#include "config/resolve.h"
#include "plan/test_support.h"
#include <gtest/gtest.h>
#include <unistd.h>

namespace zeroth::plan {
namespace {

constexpr std::int64_t kGi = std::int64_t{1} << 30;

// All weights of LLaMA-3-8B on 64 devices: 18 bytes a parameter are 135 GiB.
PlanInput input() {
  PlanInput input = on_ranks(input_for(kLlama3), 64, 0);
  input.own_memory = true;
  input.row_tokens = 1024;
  input.micro_batch_rows = 2;
  input.accumulation = 6;
  return input;
}

Plan plan_with(std::int64_t gib) {
  return make_plan(input(), {.device = Bytes(gib * kGi), .host = std::nullopt});
}

TEST(Proposal, TakesTheLeastShardingThatHoldsTheMicroBatch) {
  EXPECT_EQ(least_that_fits(plan_with(400))->stage, 0);
  EXPECT_EQ(least_that_fits(plan_with(80))->stage, 1);
  EXPECT_EQ(least_that_fits(plan_with(50))->stage, 2);
  EXPECT_EQ(least_that_fits(plan_with(30))->stage, 3);
  EXPECT_EQ(least_that_fits(plan_with(80))->micro_batch_rows, 2);
}

TEST(Proposal, KeepsTheGlobalBatchWhereOnlyAPartOfTheMicroBatchFits) {
  const auto fewer = least_that_fits(plan_with(23));
  ASSERT_TRUE(fewer.has_value());
  EXPECT_EQ(fewer->micro_batch_rows, 1);
  EXPECT_EQ(fewer->accumulation, 12);
  EXPECT_EQ(fewer->stage, 3);
  EXPECT_LE(fewer->needed, Bytes(23 * kGi));
}

// Two rows would fit, but three do not divide into twos.
TEST(Proposal, NeverChangesTheGlobalBatchToFillTheMemory) {
  PlanInput three = input();
  three.stage = 3;
  three.micro_batch_rows = 2;
  const Bytes of_two_rows = needs_of(three, size_of(three)).device.total();
  three.micro_batch_rows = 3;
  three.accumulation = 1;
  const Plan plan = make_plan(three, {.device = of_two_rows, .host = std::nullopt});
  EXPECT_EQ(plan.chosen.largest_micro_batch, 2);
  EXPECT_EQ(least_that_fits(plan)->micro_batch_rows, 1);
  EXPECT_EQ(least_that_fits(plan)->accumulation, 3);
}

TEST(Proposal, IsNoneWhereNothingFits) {
  const Plan plan = plan_with(5);
  EXPECT_FALSE(least_that_fits(plan).has_value());
  EXPECT_GT(least_needed(plan), Bytes(5 * kGi));
}

config::Resolution checked(const std::string& text, const std::string& ranks) {
  const auto file = std::filesystem::temp_directory_path() /
                    ("zeroth_proposal_" + std::to_string(::getpid()) + ".json");
  write_file_atomically(file, text);
  const std::vector<std::string> arguments{
      "--deepspeed", file.string(), "--world_size", ranks, "--strict"};
  config::Resolution resolution = config::resolve_all(config::Command::kCheck, arguments, {});
  std::filesystem::remove(file);
  return resolution;
}

TEST(Proposal, ItsFileIsReadBackWithoutAComplaint) {
  config::RunConfig config;
  config.optimizer.max_grad_norm = 0.5;
  for (const std::int64_t gib : {400, 80, 50, 30, 23}) {
    const Plan plan = plan_with(gib);
    const Proposal proposal = *least_that_fits(plan);
    const config::Resolution read = checked(ds_config(plan, proposal, config, "ds.json"), "64");
    EXPECT_TRUE(read.problems.empty()) << gib;
    EXPECT_EQ(read.config.zero.stage, proposal.stage);
    EXPECT_EQ(read.config.batch.micro_batch_rows, proposal.micro_batch_rows);
    EXPECT_EQ(read.config.global_rows(), 2 * 6 * 64);
    EXPECT_EQ(read.config.model.precision, config::Precision::kBf16);
    EXPECT_EQ(read.config.optimizer.max_grad_norm, 0.5);
  }
}

TEST(Proposal, OnAnotherNumberOfRanksItsFileIsRefused) {
  const Plan plan = plan_with(80);
  const std::string text = ds_config(plan, *least_that_fits(plan), {}, "ds.json");
  EXPECT_FALSE(checked(text, "32").problems.empty());
}

TEST(Proposal, OfOneRankSaysNothingAboutSharding) {
  PlanInput alone = on_ranks(input(), 1, 0);
  const Plan plan = make_plan(alone, {.device = Bytes(400 * kGi), .host = std::nullopt});
  const std::string text = ds_config(plan, *least_that_fits(plan), {}, "ds.json");
  EXPECT_EQ(text.find("zero_optimization"), std::string::npos);
  EXPECT_TRUE(checked(text, "1").problems.empty());
}

}  // namespace
}  // namespace zeroth::plan
