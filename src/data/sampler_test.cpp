#include "data/sampler.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"
#include <gtest/gtest.h>

namespace zeroth::data {
namespace {

using Rows = std::vector<std::int64_t>;

Rows epoch_rows(Sampler& sampler, std::int64_t epoch) {
  Rows rows;
  for (std::int64_t i = 0; i < sampler.updates_per_epoch(); ++i) {
    const Rows batch = sampler.global_batch(epoch * sampler.updates_per_epoch() + i);
    rows.insert(rows.end(), batch.begin(), batch.end());
  }
  return rows;
}

Rows counted(std::int64_t size) {
  Rows rows(static_cast<std::size_t>(size));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

TEST(Sampler, D04_EachRowOncePerEpochForAnyBatchSize) {
  for (const std::int64_t num_rows : {1, 2, 12, 97}) {
    for (const std::int64_t batch : {1, 3, 12, 64, 200}) {
      Sampler sampler(num_rows, batch, 7, true);
      for (std::int64_t epoch = 0; epoch < 3; ++epoch) {
        Rows rows = epoch_rows(sampler, epoch);
        std::sort(rows.begin(), rows.end());
        EXPECT_EQ(rows, counted(num_rows)) << num_rows << " rows, batches of " << batch;
      }
    }
  }
}

TEST(Sampler, D04_TheOrderDependsOnSeedAndEpochAlone) {
  Sampler a(100, 8, 7, true);
  Sampler b(100, 25, 7, true);
  Sampler other_seed(100, 8, 8, true);
  EXPECT_EQ(epoch_rows(a, 0), epoch_rows(b, 0));
  EXPECT_EQ(epoch_rows(a, 1), epoch_rows(b, 1));
  EXPECT_NE(epoch_rows(a, 0), epoch_rows(a, 1));
  EXPECT_NE(epoch_rows(a, 0), epoch_rows(other_seed, 0));
}

TEST(Sampler, D24_AnyUpdateCanBeAskedForFirst) {
  Sampler forward(20, 3, 42, true);
  std::vector<Rows> batches;
  for (std::int64_t update = 0; update < 21; ++update) {
    batches.push_back(forward.global_batch(update));
  }
  for (std::int64_t update = 20; update >= 0; --update) {
    Sampler fresh(20, 3, 42, true);
    EXPECT_EQ(fresh.global_batch(update), batches[static_cast<std::size_t>(update)]);
    EXPECT_EQ(forward.global_batch(update), batches[static_cast<std::size_t>(update)]);
  }
}

TEST(Sampler, D22_FewerRowsThanABatchGiveOnePartialUpdate) {
  Sampler sampler(3, 64, 1, true);
  EXPECT_EQ(sampler.updates_per_epoch(), 1);
  EXPECT_EQ(sampler.global_batch(0).size(), 3U);
}

TEST(Sampler, TheLastBatchOfAnEpochHoldsTheRest) {
  Sampler sampler(10, 4, 1, false);
  EXPECT_EQ(sampler.updates_per_epoch(), 3);
  EXPECT_EQ(sampler.global_batch(2), (Rows{8, 9}));
  EXPECT_EQ(sampler.global_batch(3), (Rows{0, 1, 2, 3}));
}

TEST(Sampler, EveryRowComesFirstEquallyOften) {
  std::vector<int> first(5);
  Sampler sampler(5, 5, 3, true);
  for (std::int64_t epoch = 0; epoch < 5000; ++epoch) {
    ++first[static_cast<std::size_t>(sampler.global_batch(epoch)[0])];
  }
  for (const int times : first) {
    EXPECT_NEAR(times, 1000, 150);  // 5 deviations
  }
}

TEST(Sampler, RefusesNonsense) {
  EXPECT_THROW(Sampler(0, 1, 1, true), Error);
  EXPECT_THROW(Sampler(1, 0, 1, true), Error);
}

TEST(MicroSteps, D21_EachRowOnceAndAsManyStepsOnEveryRank) {
  for (const std::int64_t size : {0, 1, 7, 10, 24}) {
    for (const std::int64_t micro : {1, 2, 3, 8}) {
      for (const std::int64_t dp : {1, 2, 3, 4, 8}) {
        const Rows global_batch = counted(size);
        Rows seen;
        std::set<std::size_t> num_steps;
        for (std::int64_t rank = 0; rank < dp; ++rank) {
          const auto steps = cut_into_micro_steps(global_batch, micro, dp, rank);
          num_steps.insert(steps.size());
          for (const Rows& rows : steps) {
            EXPECT_LE(static_cast<std::int64_t>(rows.size()), micro);
            seen.insert(seen.end(), rows.begin(), rows.end());
          }
        }
        std::sort(seen.begin(), seen.end());
        EXPECT_EQ(seen, global_batch) << size << " rows, micro " << micro << ", dp " << dp;
        EXPECT_EQ(num_steps.size(), 1U);
      }
    }
  }
}

TEST(MicroSteps, RankAndStepGiveTheRows) {
  const Rows batch = counted(10);
  EXPECT_EQ(cut_into_micro_steps(batch, 2, 2, 0), (std::vector<Rows>{{0, 1}, {4, 5}, {8, 9}}));
  EXPECT_EQ(cut_into_micro_steps(batch, 2, 2, 1), (std::vector<Rows>{{2, 3}, {6, 7}, {}}));
}

TEST(MicroBatch, PadsOnTheRightToTheLongestRow) {
  const Example a{.row = 4, .input_ids = {1, 2, 3}, .labels = {kIgnoreLabel, 2, 3}};
  const Example b{.row = 9, .input_ids = {5}, .labels = {5}};
  const std::vector<const Example*> rows{&a, &b};
  const MicroBatch batch = make_micro_batch(rows, 77);
  EXPECT_EQ(batch.num_rows, 2);
  EXPECT_EQ(batch.row_tokens, 3);
  EXPECT_EQ(batch.input_ids, (Rows{1, 2, 3, 5, 77, 77}));
  EXPECT_EQ(batch.labels, (Rows{-100, 2, 3, 5, -100, -100}));
  EXPECT_EQ(batch.lengths, (Rows{3, 1}));
  EXPECT_EQ(batch.rows, (Rows{4, 9}));
  EXPECT_EQ(batch.num_targets, 2);  // a first label is never predicted
}

TEST(MicroBatch, MayBeEmpty) {
  const MicroBatch batch = make_micro_batch({}, 0);
  EXPECT_EQ(batch.num_rows, 0);
  EXPECT_EQ(batch.row_tokens, 0);
  EXPECT_TRUE(batch.input_ids.empty());
}

}  // namespace
}  // namespace zeroth::data
