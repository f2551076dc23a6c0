#include "arithmetic/batch.h"

#include <limits>

#include <gtest/gtest.h>

namespace zeroth::arithmetic {
namespace {

using Given = std::optional<std::int64_t>;

constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();

BatchRequest request(Given train, Given micro, Given accumulation, std::int64_t dp) {
  return {.train_batch_size = train,
          .micro_batch_size = micro,
          .accumulation_steps = accumulation,
          .data_parallel = dp};
}

BatchSolution solved(const BatchRequest& request) {
  return std::get<BatchSolution>(solve_batch(request));
}

BatchProblem problem(const BatchRequest& request) {
  return std::get<BatchProblem>(solve_batch(request));
}

// train, micro, accumulation
std::vector<std::int64_t> triple(const BatchSolution& batch) {
  return {batch.train_batch_size, batch.micro_batch_size, batch.accumulation_steps};
}

std::vector<BatchFix> fixes(const BatchRequest& request) {
  return fixes_of(request);
}

TEST(C13, NothingGivenMeansTheDefaults) {
  const BatchSolution batch = solved(request({}, {}, {}, 2));
  EXPECT_EQ(triple(batch), (std::vector<std::int64_t>{16, 8, 1}));
  EXPECT_TRUE(batch.defaults);
}

TEST(C17, ABatchSmallerThanTheRanksNamesTheSmallestValidOne) {
  const BatchProblem alone = problem(request(4, {}, {}, 8));
  EXPECT_EQ(alone.kind, BatchProblemKind::kTooSmall);
  EXPECT_EQ(alone.above, 8);
  EXPECT_EQ(alone.below, std::nullopt);
  EXPECT_EQ(problem(request(4, 3, {}, 8)).above, 24);
  EXPECT_EQ(fixes(request(4, {}, {}, 8)),
            (std::vector<BatchFix>{{BatchFactor::kTrainBatchSize, 8}}));
}

TEST(C18, AnIndivisibleBatchOffersTheNearestOnes) {
  const BatchProblem found = problem(request(10, 1, {}, 4));
  EXPECT_EQ(found.kind, BatchProblemKind::kNotDivisible);
  EXPECT_EQ(found.product, 4);
  EXPECT_EQ(found.below, 8);
  EXPECT_EQ(found.above, 12);
  EXPECT_EQ(fixes(request(10, 1, {}, 4)),
            (std::vector<BatchFix>{{BatchFactor::kTrainBatchSize, 8},
                                   {BatchFactor::kTrainBatchSize, 12}}));
  EXPECT_EQ(problem(request(5, 2, {}, 4)).below, std::nullopt);
  EXPECT_EQ(problem(request(5, 2, {}, 4)).above, 8);
}

TEST(C19, TheMissingMembersAreInferredAndSaidToBe) {
  const BatchSolution a = solved(request(32, {}, {}, 4));
  EXPECT_EQ(triple(a), (std::vector<std::int64_t>{32, 8, 1}));
  EXPECT_FALSE(a.train_batch_size_inferred);
  EXPECT_TRUE(a.micro_batch_size_inferred && a.accumulation_steps_inferred);
  EXPECT_FALSE(a.defaults);
  const BatchSolution b = solved(request({}, 4, {}, 4));
  EXPECT_EQ(triple(b), (std::vector<std::int64_t>{16, 4, 1}));
  EXPECT_TRUE(b.train_batch_size_inferred && b.accumulation_steps_inferred);
  EXPECT_FALSE(b.micro_batch_size_inferred);
  EXPECT_EQ(triple(solved(request(32, {}, 2, 4))), (std::vector<std::int64_t>{32, 4, 2}));
  EXPECT_EQ(triple(solved(request(32, 2, {}, 4))), (std::vector<std::int64_t>{32, 2, 4}));
  EXPECT_EQ(problem(request({}, {}, 2, 4)).kind, BatchProblemKind::kAccumulationAlone);
  const BatchSolution f = solved(request({}, {}, {}, 4));
  EXPECT_EQ(triple(f), (std::vector<std::int64_t>{32, 8, 1}));
  EXPECT_TRUE(f.defaults && f.train_batch_size_inferred && f.micro_batch_size_inferred &&
              f.accumulation_steps_inferred);
}

TEST(C20, TensorParallelRanksDoNotEnlargeTheBatch) {
  const auto dp = data_parallel_ranks({.world_size = 16, .tensor_parallel = 2});
  ASSERT_EQ(std::get<std::int64_t>(dp), 8);
  EXPECT_EQ(solved(request({}, 4, 1, 8)).train_batch_size, 32);
}

TEST(C21, SequenceParallelRanksDoNotEnlargeTheBatch) {
  const auto dp = data_parallel_ranks({.world_size = 8, .sequence_parallel = 4});
  ASSERT_EQ(std::get<std::int64_t>(dp), 2);
  const BatchSolution batch = solved(request({}, 1, 2, 2));
  EXPECT_EQ(batch.train_batch_size, 4);
  EXPECT_EQ(batch.train_batch_size * 2048, 8192);
}

TEST(Grid, AWorldThatDoesNotDivideOffersTheNearestSizes) {
  const auto found = std::get<GridProblem>(
      data_parallel_ranks({.world_size = 10, .tensor_parallel = 2, .pipeline_parallel = 2}));
  EXPECT_EQ(found.kind, GridProblemKind::kNotDivisible);
  EXPECT_EQ(found.model_ranks, 4);
  EXPECT_EQ(found.below, 8);
  EXPECT_EQ(found.above, 12);
  EXPECT_EQ(
      std::get<GridProblem>(data_parallel_ranks({.world_size = 2, .tensor_parallel = 4})).below,
      std::nullopt);
}

TEST(Grid, RefusesSizesThatAreNone) {
  const auto zero = std::get<GridProblem>(data_parallel_ranks({.pipeline_parallel = 0}));
  EXPECT_EQ(zero.kind, GridProblemKind::kNotPositive);
  EXPECT_EQ(zero.axis, GridAxis::kPipelineParallel);
  const auto huge = std::get<GridProblem>(
      data_parallel_ranks({.world_size = 8, .tensor_parallel = kHuge, .sequence_parallel = 3}));
  EXPECT_EQ(huge.kind, GridProblemKind::kOverflow);
}

// The story behind this project: the file says 32 = m x 1 x 4, the command line m = 1.
TEST(Batch, AProductThatDoesNotHoldOffersOneChangeOfEachFactor) {
  const BatchRequest wrong = request(32, 1, 2, 4);
  const BatchProblem found = problem(wrong);
  EXPECT_EQ(found.kind, BatchProblemKind::kNotEqual);
  EXPECT_EQ(found.product, 8);
  EXPECT_EQ(fixes(wrong),
            (std::vector<BatchFix>{{BatchFactor::kTrainBatchSize, 8},
                                   {BatchFactor::kMicroBatchSize, 4},
                                   {BatchFactor::kAccumulationSteps, 8}}));
}

TEST(Batch, FixesAloneAccumulationAndIndivisibleFactors) {
  EXPECT_EQ(fixes(request({}, {}, 2, 4)),
            (std::vector<BatchFix>{{BatchFactor::kMicroBatchSize, 8},
                                   {BatchFactor::kTrainBatchSize, 64}}));
  EXPECT_EQ(fixes(request(32, 3, {}, 4)),  // 8 rows a rank: 2 is the largest divisor below 3
            (std::vector<BatchFix>{{BatchFactor::kTrainBatchSize, 24},
                                   {BatchFactor::kTrainBatchSize, 36},
                                   {BatchFactor::kMicroBatchSize, 2}}));
  EXPECT_TRUE(fixes(request(32, 2, 4, 4)).empty()) << "nothing to mend";
}

TEST(Batch, RefusesWhatIsNotPositiveByName) {
  EXPECT_EQ(problem(request(0, 1, 1, 1)).factor, BatchFactor::kTrainBatchSize);
  EXPECT_EQ(problem(request(4, -1, 1, 1)).factor, BatchFactor::kMicroBatchSize);
  EXPECT_EQ(problem(request(4, 1, 0, 1)).factor, BatchFactor::kAccumulationSteps);
  EXPECT_EQ(problem(request(4, 1, {}, 0)).factor, BatchFactor::kDataParallel);
  EXPECT_EQ(problem(request({}, {}, 0, 1)).kind, BatchProblemKind::kNotPositive);
}

TEST(Batch, AnOverflowIsAProblemAndNotANegativeBatch) {
  EXPECT_EQ(problem(request({}, kHuge, 2, 1)).kind, BatchProblemKind::kOverflow);
  EXPECT_EQ(problem(request({}, {}, {}, kHuge)).kind, BatchProblemKind::kOverflow);
  EXPECT_EQ(problem(request(kHuge, 2, {}, 1)).above, std::nullopt);
  EXPECT_EQ(problem(request(kHuge, 2, {}, 1)).below, kHuge - 1);
}

// DeepSpeed's own test table: world size 2 and (train, micro, accumulation).
TEST(Batch, DecidesDeepSpeedsOwnTable) {
  EXPECT_EQ(solved(request(32, 16, 1, 2)).train_batch_size, 32);
  EXPECT_EQ(solved(request(32, 8, 2, 2)).train_batch_size, 32);
  EXPECT_EQ(problem(request(33, 17, 2, 2)).kind, BatchProblemKind::kNotEqual);
  EXPECT_EQ(problem(request(32, 18, 1, 2)).kind, BatchProblemKind::kNotEqual);
  EXPECT_EQ(triple(solved(request(32, {}, {}, 2))), (std::vector<std::int64_t>{32, 16, 1}));
  EXPECT_EQ(triple(solved(request({}, 16, {}, 2))), (std::vector<std::int64_t>{32, 16, 1}));
  EXPECT_EQ(triple(solved(request({}, 8, 2, 2))), (std::vector<std::int64_t>{32, 8, 2}));
}

// Whether any positive values of the members not given make the product hold.
bool has_solution(const BatchRequest& asked) {
  for (std::int64_t micro = 1; micro <= 12; ++micro) {
    for (std::int64_t steps = 1; steps <= 12; ++steps) {
      const std::int64_t train = micro * steps * asked.data_parallel;
      if (asked.train_batch_size.value_or(train) == train &&
          asked.micro_batch_size.value_or(micro) == micro &&
          asked.accumulation_steps.value_or(steps) == steps) {
        return true;
      }
    }
  }
  return false;
}

void expect_consistent(const BatchRequest& asked) {
  const auto result = solve_batch(asked);
  const auto* batch = std::get_if<BatchSolution>(&result);
  const bool alone = !asked.train_batch_size && !asked.micro_batch_size && asked.accumulation_steps;
  ASSERT_EQ(batch != nullptr, has_solution(asked) && !alone);
  if (batch != nullptr) {
    EXPECT_EQ(batch->train_batch_size,
              batch->micro_batch_size * batch->accumulation_steps * asked.data_parallel);
    EXPECT_EQ(batch->train_batch_size, asked.train_batch_size.value_or(batch->train_batch_size));
    EXPECT_EQ(batch->micro_batch_size, asked.micro_batch_size.value_or(batch->micro_batch_size));
    EXPECT_EQ(batch->accumulation_steps,
              asked.accumulation_steps.value_or(batch->accumulation_steps));
    return;
  }
  const std::vector<BatchFix> offered = fixes_of(asked);
  EXPECT_TRUE(!offered.empty() && offered.size() <= 3);
  for (const BatchFix& fix : offered) {
    EXPECT_TRUE(std::holds_alternative<BatchSolution>(solve_batch(with_fix(asked, fix))));
  }
}

TEST(Batch, EverySmallRequestIsSolvedExactlyOrMendedByOneChange) {
  const auto given = [](std::int64_t value) { return value == 0 ? Given{} : Given{value}; };
  for (std::int64_t dp = 1; dp <= 4; ++dp) {
    for (std::int64_t train = 0; train <= 12; ++train) {
      for (std::int64_t micro = 0; micro <= 5; ++micro) {
        for (std::int64_t steps = 0; steps <= 5; ++steps) {
          SCOPED_TRACE(::testing::Message() << train << " " << micro << " " << steps << " " << dp);
          expect_consistent(request(given(train), given(micro), given(steps), dp));
        }
      }
    }
  }
}

}  // namespace
}  // namespace zeroth::arithmetic
