#include "plan/input.h"

#include "base/error.h"
#include "config/resolve.h"
#include "plan/test_support.h"
#include <gtest/gtest.h>

namespace zeroth::plan {
namespace {

PlanInput input_with(const std::vector<std::string>& arguments) {
  const config::Resolution resolution = config::resolve_all(config::Command::kPlan, arguments, {});
  EXPECT_TRUE(resolution.problems.empty());
  return input_of(resolution.config, model_of(kLlama3));
}

TEST(Input, HasTheDefaultsOfTraining) {
  const PlanInput input = input_with({});
  EXPECT_EQ(input.compute_bytes, 4);
  EXPECT_EQ(input.gradient_bytes, 4);
  EXPECT_EQ(input.num_moments, 2);
  EXPECT_EQ(input.stage, 0);
  EXPECT_EQ(input.ranks, 1);
  EXPECT_EQ(input.micro_batch_rows, 8);
  EXPECT_EQ(input.accumulation, 1);
  EXPECT_EQ(input.row_tokens, 2048);  // of the model's 8192
  EXPECT_EQ(input.eval_rows, 0);
  EXPECT_FALSE(input.own_memory);
  ASSERT_TRUE(input.lora.has_value());
  EXPECT_EQ(input.lora->rank, 8);
}

TEST(Input, FollowsTheSettings) {
  const PlanInput input = input_with({"--finetuning_type=full",
                                      "--bf16",
                                      "--zero_stage=3",
                                      "--world_size=64",
                                      "--per_device_train_batch_size=2",
                                      "--gradient_accumulation_steps=4",
                                      "--cutoff_len=512",
                                      "--val_size=0.1",
                                      "--device_memory=80GiB"});
  EXPECT_FALSE(input.lora.has_value());
  EXPECT_EQ(input.compute_type, "bf16");
  EXPECT_EQ(input.compute_bytes, 2);
  EXPECT_EQ(input.stage, 3);
  EXPECT_EQ(input.ranks, 64);
  EXPECT_EQ(input.ranks_on_host(), 8);
  EXPECT_EQ(input.micro_batch_rows, 2);
  EXPECT_EQ(input.accumulation, 4);
  EXPECT_EQ(input.row_tokens, 512);
  EXPECT_EQ(input.eval_rows, 8);
  EXPECT_TRUE(input.own_memory);
}

TEST(Input, RanksShareFrozenWeightsWhereTheyShareMemory) {
  EXPECT_TRUE(input_with({"--ranks=2"}).share_frozen);
  EXPECT_FALSE(input_with({"--ranks=2", "--share_frozen=false"}).share_frozen);
  EXPECT_FALSE(input_with({"--ranks=2", "--device_memory=80GiB"}).share_frozen);
}

TEST(Input, RanksOfAHostAreAsGivenOrAtMostEight) {
  EXPECT_EQ(input_with({"--ranks=4"}).ranks_on_host(), 4);
  EXPECT_EQ(input_with({"--ranks=32"}).ranks_on_host(), 8);
  EXPECT_EQ(input_with({"--ranks=32", "--ranks_per_node=16"}).ranks_on_host(), 16);
  EXPECT_EQ(input_with({"--ranks=4", "--gpus_per_node=16"}).ranks_on_host(), 4);
}

TEST(Input, OptimizersHaveTheirMoments) {
  EXPECT_EQ(input_with({"--optim=sgd"}).num_moments, 0);
  EXPECT_EQ(input_with({"--optim=sgd", "--sgd_momentum=0.9"}).num_moments, 1);
  EXPECT_EQ(input_with({"--optim=lion"}).num_moments, 1);
  EXPECT_EQ(input_with({"--optim=adagrad"}).num_moments, 1);
  EXPECT_EQ(input_with({"--optim=lamb"}).num_moments, 2);
  EXPECT_EQ(input_with({"--optim=adamw"}).num_moments, 2);
}

TEST(Input, CountsWhatIsPlannedOrElsewhereAlready) {
  const PlanInput input = input_with({"--fp16",
                                      "--gradient_checkpointing",
                                      "--data_types.grad_accum_dtype=fp16",
                                      "--ranks=2",
                                      "--zero_stage=3",
                                      "--zero_optimization.offload_optimizer.device=cpu",
                                      "--zero_optimization.offload_param.device=nvme",
                                      "--zero_optimization.offload_param.nvme_path=/tmp"});
  EXPECT_EQ(input.compute_type, "fp16");
  EXPECT_EQ(input.compute_bytes, 2);
  EXPECT_EQ(input.gradient_bytes, 2);
  EXPECT_TRUE(input.gradient_checkpointing);
  EXPECT_EQ(input.offload.optimizer, Place::kHost);
  EXPECT_EQ(input.offload.parameters, Place::kFiles);
}

TEST(Input, RanksThatDivideAModelAreRefused) {
  config::RunConfig config;
  config.grid = {.world_size = 8, .dp = 4, .tp = 2};
  EXPECT_THROW((void)input_of(config, model_of(kLlama3)), Error);
}

}  // namespace
}  // namespace zeroth::plan
