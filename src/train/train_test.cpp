#include "train/batches.h"
#include "train/plan.h"
#include <gtest/gtest.h>

namespace zeroth::train {
namespace {

config::RunConfig run(std::int64_t micro, std::int64_t accumulation) {
  config::RunConfig config;
  config.batch.micro_batch_rows = micro;
  config.batch.accumulation = accumulation;
  return config;
}

TEST(N14, ThePartialWindowOfAnEpochIsAnUpdate) {
  config::RunConfig config = run(1, 4);
  config.schedule.num_train_epochs = 1;
  const TrainPlan plan = make_plan(config, 10);
  EXPECT_EQ(plan.updates_per_epoch, 3);
  EXPECT_EQ(plan.total_updates, 3);
}

TEST(N15, AccumulationLongerThanTheDataStillTrains) {
  config::RunConfig config = run(1, 8);
  config.schedule.num_train_epochs = 1;
  EXPECT_EQ(make_plan(config, 3).total_updates, 1);
}

TEST(Plan, MaxStepsBeatsEpochsAndWarmUpStepsBeatTheRatio) {
  config::RunConfig config = run(2, 2);
  config.schedule = {.warmup_ratio = 0.1, .num_train_epochs = 2.5};
  EXPECT_EQ(make_plan(config, 40).total_updates, 25);
  EXPECT_EQ(make_plan(config, 40).schedule.warmup_updates, 3);
  config.schedule.max_steps = 7;
  config.schedule.warmup_steps = 2;
  EXPECT_EQ(make_plan(config, 40).total_updates, 7);
  EXPECT_EQ(make_plan(config, 40).schedule.warmup_updates, 2);
}

TEST(TokenBatch, PadsOnTheRightAndCountsTargets) {
  data::Dataset dataset;
  dataset.examples = {{.row = 0, .input_ids = {5, 6, 7}, .labels = {-100, 6, 7}},
                      {.row = 1, .input_ids = {8}, .labels = {8}}};
  const std::vector<std::int64_t> rows{0, 1};
  const models::TokenBatch batch = token_batch(dataset, rows, 9);
  EXPECT_EQ(batch.num_targets, 2);
  EXPECT_EQ(batch.ids_BT[1][2].item<std::int64_t>(), 9);
  EXPECT_EQ(batch.labels_BT[1][2].item<std::int64_t>(), -100);
  EXPECT_EQ(num_tokens(dataset, rows), 4);
}

}  // namespace
}  // namespace zeroth::train
