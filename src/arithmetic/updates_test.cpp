#include "arithmetic/updates.h"

#include <limits>

#include "base/error.h"
#include <gtest/gtest.h>

namespace zeroth::arithmetic {
namespace {

ErrorKind refusal(double epochs, std::int64_t per_epoch) {
  try {
    return static_cast<void>(updates_of_epochs(epochs, per_epoch)), ErrorKind::kInternal;
  } catch (const Error& error) {
    return error.kind();
  }
}

TEST(N14, TheLastIncompleteWindowIsAnUpdateOfItsOwnRows) {
  EXPECT_EQ(updates_per_epoch(10, 4), 3);
  EXPECT_EQ(last_window_rows(10, 4), 2);
  EXPECT_EQ(updates_per_epoch(12, 4), 3);
  EXPECT_EQ(last_window_rows(12, 4), 4);
  EXPECT_EQ(updates_per_epoch(3, 8), 1);
  EXPECT_EQ(last_window_rows(3, 8), 3);
  EXPECT_EQ(updates_per_epoch(0, 8), 0);
  EXPECT_EQ(last_window_rows(0, 8), 0);
  EXPECT_EQ(updates_per_epoch(std::numeric_limits<std::int64_t>::max(), 1),
            std::numeric_limits<std::int64_t>::max());
}

TEST(N11, UpdatesDoNotDependOnTheRanks) {
  EXPECT_EQ(run_length({.rows = 1000, .global_rows = 20, .num_train_epochs = 1}).total_updates, 50);
}

TEST(C47, MaxStepsBeatsEpochsAndBothAreKept) {
  const RunLength shorter =
      run_length({.rows = 100, .global_rows = 10, .num_train_epochs = 2, .max_steps = 5});
  EXPECT_EQ(shorter.total_updates, 5);
  EXPECT_EQ(shorter.updates_by_epochs, 20);
  EXPECT_EQ(shorter.updates_by_max_steps, 5);
  EXPECT_TRUE(shorter.max_steps_differs());
  const RunLength longer =
      run_length({.rows = 100, .global_rows = 10, .num_train_epochs = 1, .max_steps = 50});
  EXPECT_EQ(longer.total_updates, 50);
  EXPECT_EQ(longer.updates_by_epochs, 10);
  EXPECT_TRUE(longer.max_steps_differs());
  EXPECT_FALSE(run_length({.rows = 100, .global_rows = 10, .num_train_epochs = 1, .max_steps = 10})
                   .max_steps_differs());
  const RunLength epochs = run_length({.rows = 100, .global_rows = 10, .num_train_epochs = 2});
  EXPECT_EQ(epochs.total_updates, 20);
  EXPECT_EQ(epochs.updates_by_max_steps, std::nullopt);
}

TEST(Updates, FractionsOfAnEpochAreRoundedUpAsTransformersDoes) {
  EXPECT_EQ(updates_of_epochs(2.5, 10), 25);
  EXPECT_EQ(updates_of_epochs(0.25, 10), 3);
  EXPECT_EQ(updates_of_epochs(0.01, 10), 1);
  EXPECT_EQ(updates_of_epochs(0, 10), 1);
  EXPECT_EQ(updates_of_epochs(1.1, 50), 56);  // math.ceil(1.1 * 50)
}

TEST(Updates, EpochsBeyondAllCountingAreRefused) {
  EXPECT_EQ(refusal(1e300, 10), ErrorKind::kConfig);
  EXPECT_EQ(refusal(-1, 10), ErrorKind::kConfig);
  EXPECT_EQ(refusal(std::numeric_limits<double>::quiet_NaN(), 10), ErrorKind::kConfig);
  EXPECT_EQ(refusal(std::numeric_limits<double>::infinity(), 0), ErrorKind::kConfig);
  EXPECT_THROW(static_cast<void>(updates_per_epoch(5, 0)), Error);
}

TEST(Warmup, StepsBeatTheRatioWhichIsRoundedUp) {
  EXPECT_EQ(warmup_updates(0, 0.1, 25), 3);
  EXPECT_EQ(warmup_updates(0, 0.2, 5), 1);
  EXPECT_EQ(warmup_updates(7, 0.1, 25), 7);
  EXPECT_EQ(warmup_updates(0, 0.07, 100), 8);  // math.ceil(100 * 0.07)
  EXPECT_EQ(warmup_updates(0, 0, 25), 0);
  EXPECT_THROW(static_cast<void>(warmup_updates(0, -0.5, 25)), Error);
}

}  // namespace
}  // namespace zeroth::arithmetic
