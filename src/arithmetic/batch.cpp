#include "arithmetic/batch.h"

#include <algorithm>

#include "arithmetic/checked.h"

namespace zeroth::arithmetic {
namespace {

using Solved = std::variant<BatchSolution, BatchProblem>;

std::optional<GridAxis> not_positive(const Grid& grid) {
  const std::pair<GridAxis, std::int64_t> axes[] = {
      {GridAxis::kWorldSize, grid.world_size},
      {GridAxis::kTensorParallel, grid.tensor_parallel},
      {GridAxis::kPipelineParallel, grid.pipeline_parallel},
      {GridAxis::kSequenceParallel, grid.sequence_parallel}};
  for (const auto& [axis, size] : axes) {
    if (size < 1) {
      return axis;
    }
  }
  return std::nullopt;
}

std::optional<BatchFactor> not_positive(const BatchRequest& request) {
  const std::pair<BatchFactor, std::int64_t> factors[] = {
      {BatchFactor::kTrainBatchSize, request.train_batch_size.value_or(1)},
      {BatchFactor::kMicroBatchSize, request.micro_batch_size.value_or(1)},
      {BatchFactor::kAccumulationSteps, request.accumulation_steps.value_or(1)},
      {BatchFactor::kDataParallel, request.data_parallel}};
  for (const auto& [factor, value] : factors) {
    if (value < 1) {
      return factor;
    }
  }
  return std::nullopt;
}

bool nothing_given(const BatchRequest& request) {
  return !request.train_batch_size && !request.micro_batch_size && !request.accumulation_steps;
}

BatchSolution solution(const BatchRequest& request, std::int64_t train_batch_size) {
  return {.train_batch_size = train_batch_size,
          .micro_batch_size = request.micro_batch_size.value_or(1),
          .accumulation_steps = request.accumulation_steps.value_or(1),
          .data_parallel = request.data_parallel,
          .train_batch_size_inferred = !request.train_batch_size,
          .micro_batch_size_inferred = !request.micro_batch_size,
          .accumulation_steps_inferred = !request.accumulation_steps};
}

// `unit`: what the given factors make of the batch; `train` is known to be at least dp.
Solved divide(const BatchRequest& request, std::int64_t train, std::int64_t unit) {
  if (request.micro_batch_size && request.accumulation_steps && train != unit) {
    return BatchProblem{.kind = BatchProblemKind::kNotEqual, .product = unit, .above = unit};
  }
  if (train % unit != 0) {
    const auto [below, above] = multiples_around(train, unit);
    return BatchProblem{
        .kind = BatchProblemKind::kNotDivisible, .product = unit, .below = below, .above = above};
  }
  BatchSolution solved = solution(request, train);
  (request.micro_batch_size ? solved.accumulation_steps : solved.micro_batch_size) *= train / unit;
  return solved;
}

Solved solve_given(const BatchRequest& request) {
  const std::optional<std::int64_t> unit = product_of({request.data_parallel,
                                                       request.micro_batch_size.value_or(1),
                                                       request.accumulation_steps.value_or(1)});
  if (!unit) {
    return BatchProblem{.kind = BatchProblemKind::kOverflow};
  }
  const std::int64_t train = request.train_batch_size.value_or(*unit);
  if (train < request.data_parallel) {
    return BatchProblem{.kind = BatchProblemKind::kTooSmall, .product = *unit, .above = *unit};
  }
  return divide(request, train, *unit);
}

// The largest divisor of `value` that is at most `limit`. Looks at a million candidates: no real
// factor of a batch is larger.
std::int64_t divisor_at_most(std::int64_t value, std::int64_t limit) {
  std::int64_t divisor = std::min({value, limit, std::int64_t{1} << 20});
  while (divisor > 1 && value % divisor != 0) {
    --divisor;
  }
  return std::max<std::int64_t>(1, divisor);
}

// What `asked` (one given factor) can become when the rest of the request stays.
std::int64_t mended(std::int64_t train,
                    std::int64_t asked,
                    std::optional<std::int64_t> other,
                    std::int64_t data_parallel) {
  const std::int64_t rest = train / data_parallel;
  return other ? rest / std::max<std::int64_t>(1, *other) : divisor_at_most(rest, asked);
}

std::vector<BatchFix> candidates(const BatchRequest& request, const BatchProblem& problem) {
  std::vector<BatchFix> fixes;
  if (problem.kind == BatchProblemKind::kAccumulationAlone) {
    const auto train =
        product_of({request.data_parallel, *request.accumulation_steps, kDefaultMicroBatchSize});
    fixes.push_back({BatchFactor::kMicroBatchSize, kDefaultMicroBatchSize});
    fixes.push_back({BatchFactor::kTrainBatchSize, train.value_or(0)});
    return fixes;
  }
  for (const std::optional<std::int64_t>& train : {problem.below, problem.above}) {
    fixes.push_back({BatchFactor::kTrainBatchSize, train.value_or(0)});
  }
  const std::int64_t train = request.train_batch_size.value_or(0);
  const std::int64_t dp = std::max<std::int64_t>(1, request.data_parallel);
  if (const auto& micro = request.micro_batch_size) {
    fixes.push_back(
        {BatchFactor::kMicroBatchSize, mended(train, *micro, request.accumulation_steps, dp)});
  }
  if (const auto& steps = request.accumulation_steps) {
    fixes.push_back(
        {BatchFactor::kAccumulationSteps, mended(train, *steps, request.micro_batch_size, dp)});
  }
  return fixes;
}

bool solves(const BatchRequest& request, const BatchFix& fix) {
  return std::holds_alternative<BatchSolution>(solve_batch(with_fix(request, fix)));
}

}  // namespace

std::variant<std::int64_t, GridProblem> data_parallel_ranks(const Grid& grid) {
  if (const auto axis = not_positive(grid)) {
    return GridProblem{.kind = GridProblemKind::kNotPositive, .axis = *axis};
  }
  const std::optional<std::int64_t> model_ranks =
      product_of({grid.tensor_parallel, grid.pipeline_parallel, grid.sequence_parallel});
  if (!model_ranks) {
    return GridProblem{.kind = GridProblemKind::kOverflow};
  }
  if (grid.world_size % *model_ranks != 0) {
    const auto [below, above] = multiples_around(grid.world_size, *model_ranks);
    return GridProblem{.kind = GridProblemKind::kNotDivisible,
                       .model_ranks = *model_ranks,
                       .below = below,
                       .above = above};
  }
  return grid.world_size / *model_ranks;
}

std::variant<BatchSolution, BatchProblem> solve_batch(const BatchRequest& request) {
  if (const auto factor = not_positive(request)) {
    return BatchProblem{.kind = BatchProblemKind::kNotPositive, .factor = *factor};
  }
  if (nothing_given(request)) {
    Solved solved = solve_given({.micro_batch_size = kDefaultMicroBatchSize,
                                 .accumulation_steps = kDefaultAccumulation,
                                 .data_parallel = request.data_parallel});
    if (auto* batch = std::get_if<BatchSolution>(&solved)) {
      batch->micro_batch_size_inferred = batch->accumulation_steps_inferred = batch->defaults =
          true;
    }
    return solved;
  }
  if (!request.train_batch_size && !request.micro_batch_size) {
    return BatchProblem{.kind = BatchProblemKind::kAccumulationAlone};
  }
  return solve_given(request);
}

std::vector<BatchFix> fixes_of(const BatchRequest& request) {
  const Solved solved = solve_batch(request);
  const auto* problem = std::get_if<BatchProblem>(&solved);
  if (problem == nullptr) {
    return {};
  }
  std::vector<BatchFix> fixes = candidates(request, *problem);
  std::erase_if(fixes, [&](const BatchFix& fix) { return !solves(request, fix); });
  return fixes;
}

BatchRequest with_fix(BatchRequest request, const BatchFix& fix) {
  switch (fix.factor) {
    case BatchFactor::kTrainBatchSize:
      request.train_batch_size = fix.value;
      break;
    case BatchFactor::kMicroBatchSize:
      request.micro_batch_size = fix.value;
      break;
    case BatchFactor::kAccumulationSteps:
      request.accumulation_steps = fix.value;
      break;
    case BatchFactor::kDataParallel:
      request.data_parallel = fix.value;
      break;
  }
  return request;
}

}  // namespace zeroth::arithmetic
