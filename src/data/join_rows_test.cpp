#include "data/join_rows.h"

#include <algorithm>
#include <map>

#include "base/random.h"
#include "data/encode.h"
#include "data/sampler.h"
#include <gtest/gtest.h>

namespace zeroth::data {
namespace {

// Rows of these lengths, each token the number of its row, all but the first trained.
Dataset rows_of(const std::vector<std::size_t>& lengths) {
  Dataset dataset;
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    Example example;
    example.input_ids.assign(lengths[row], static_cast<text::TokenId>(row));
    example.labels = example.input_ids;
    dataset.examples.push_back(std::move(example));
  }
  number_rows(dataset);
  return dataset;
}

TEST(JoinRows, EachGoesWhereItLeavesTheLeastRoom) {
  Dataset dataset = rows_of({3, 7, 5, 2, 3});
  join_rows(dataset, 10);
  ASSERT_EQ(dataset.examples.size(), 2U);
  EXPECT_EQ(dataset.examples[0].input_ids,
            (std::vector<text::TokenId>{0, 0, 0, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(dataset.examples[0].begins, (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(dataset.examples[1].input_ids,
            (std::vector<text::TokenId>{2, 2, 2, 2, 2, 3, 3, 4, 4, 4}));
  EXPECT_EQ(dataset.examples[1].begins, (std::vector<std::int64_t>{0, 5, 7}));
  EXPECT_EQ(dataset.examples[1].row, 1);
}

TEST(JoinRows, NoRowPredictsTheNext) {
  Dataset dataset = rows_of({3, 4});
  const std::int64_t targets = dataset.num_targets;
  join_rows(dataset, 10);
  ASSERT_EQ(dataset.examples.size(), 1U);
  EXPECT_EQ(dataset.examples[0].labels, (std::vector<text::TokenId>{-100, 0, 0, -100, 1, 1, 1}));
  EXPECT_EQ(dataset.num_targets, targets);
}

TEST(JoinRows, NothingIsLostOrTwice) {
  RandomStream random(7, 1);
  std::vector<std::size_t> lengths;
  for (int i = 0; i < 2000; ++i) {
    lengths.push_back(1 + random.below(300));
  }
  Dataset dataset = rows_of(lengths);
  const std::int64_t tokens = dataset.num_tokens;
  const std::int64_t targets = dataset.num_targets;
  const std::uint64_t fingerprint = dataset.fingerprint;
  join_rows(dataset, 512);
  std::map<text::TokenId, std::size_t> seen;
  for (const Example& example : dataset.examples) {
    EXPECT_LE(example.input_ids.size(), 512U);
    for (const text::TokenId id : example.input_ids) {
      ++seen[id];
    }
  }
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    EXPECT_EQ(seen[static_cast<text::TokenId>(row)], lengths[row]);
  }
  EXPECT_EQ(dataset.num_tokens, tokens);
  EXPECT_EQ(dataset.num_targets, targets);
  EXPECT_EQ(dataset.num_rows(), 2000);
  EXPECT_NE(dataset.fingerprint, fingerprint);
  const auto least = static_cast<std::size_t>((tokens + 511) / 512);
  EXPECT_LE(dataset.examples.size(), least + least / 50 + 1);  // little is padding
}

// Where a row begins, for every place; padding begins by itself.
TEST(JoinRows, AMicroBatchSaysWhereEachRowBegins) {
  Dataset dataset = rows_of({2, 3, 4});
  join_rows(dataset, 5);
  std::vector<const Example*> examples;
  for (const Example& example : dataset.examples) {
    examples.push_back(&example);
  }
  const MicroBatch batch = make_micro_batch(examples, 0);
  ASSERT_EQ(batch.num_rows, 2);
  EXPECT_EQ(batch.begins, (std::vector<std::int64_t>{0, 0, 2, 2, 2, 0, 0, 0, 0, 4}));
  Dataset single = rows_of({2, 3});
  const std::vector<const Example*> plain{&single.examples[0], &single.examples[1]};
  EXPECT_TRUE(make_micro_batch(plain, 0).begins.empty());
}

}  // namespace
}  // namespace zeroth::data
