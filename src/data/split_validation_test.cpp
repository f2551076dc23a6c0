#include <set>

#include "data/load.h"
#include "data/test_support.h"
#include <gtest/gtest.h>

namespace zeroth::data {
namespace {

using test::error_of;

Dataset rows(std::int64_t count) {
  Dataset dataset;
  dataset.fingerprint = 99;
  for (std::int64_t row = 0; row < count; ++row) {
    dataset.examples.push_back(
        {.row = row, .input_ids = {1, 2, 3}, .labels = {kIgnoreLabel, 2, 3}});
  }
  return dataset;
}

std::vector<std::int64_t> ids(const Dataset& dataset) {
  std::vector<std::int64_t> found;
  for (const Example& example : dataset.examples) {
    found.push_back(example.row);
  }
  return found;
}

TEST(SplitValidation, MovesRowsAndKeepsTheirNumbersAndOrder) {
  Dataset dataset = rows(20);
  const Dataset validation = split_validation(dataset, 5, 42);
  EXPECT_EQ(validation.examples.size(), 5U);
  EXPECT_EQ(validation.num_tokens, 15);
  EXPECT_EQ(validation.num_targets, 10);
  EXPECT_EQ(dataset.num_tokens, 45);
  EXPECT_EQ(validation.fingerprint, 99U);
  const auto left = ids(dataset);
  const auto right = ids(validation);
  EXPECT_TRUE(std::is_sorted(left.begin(), left.end()));
  EXPECT_TRUE(std::is_sorted(right.begin(), right.end()));
  std::set<std::int64_t> all(left.begin(), left.end());
  all.insert(right.begin(), right.end());
  EXPECT_EQ(all.size(), 20U);
}

TEST(SplitValidation, TheSeedDecidesWhich) {
  const auto chosen = [](std::uint64_t seed) {
    Dataset dataset = rows(50);
    return ids(split_validation(dataset, 0.1, seed));
  };
  EXPECT_EQ(chosen(1), chosen(1));
  EXPECT_NE(chosen(1), chosen(2));
}

TEST(SplitValidation, AShareIsRoundedUpAndOneIsACount) {
  const auto taken = [](double val_size) {
    Dataset dataset = rows(11);
    return split_validation(dataset, val_size, 1).examples.size();
  };
  EXPECT_EQ(taken(0.1), 2U);
  EXPECT_EQ(taken(0.001), 1U);
  EXPECT_EQ(taken(1), 1U);
  EXPECT_EQ(taken(10), 10U);
}

TEST(SplitValidation, RefusesToLeaveASideEmpty) {
  Dataset dataset = rows(4);
  EXPECT_HAS(error_of(ErrorKind::kData, [&] { (void)split_validation(dataset, 4, 1); }),
             "takes 4 of 4 rows");
  EXPECT_HAS(error_of(ErrorKind::kData, [&] { (void)split_validation(dataset, 0.99, 1); }),
             "leaves none");
  EXPECT_HAS(error_of(ErrorKind::kConfig, [&] { (void)split_validation(dataset, 2.5, 1); }),
             "val_size 2.5");
  EXPECT_HAS(error_of(ErrorKind::kConfig, [&] { (void)split_validation(dataset, 0, 1); }),
             "val_size 0");
  EXPECT_EQ(dataset.examples.size(), 4U);
}

}  // namespace
}  // namespace zeroth::data
