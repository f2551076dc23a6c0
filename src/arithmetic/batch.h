#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

// Which rows make one update: train_batch_size = micro batch x accumulation x data-parallel ranks.
// Pure arithmetic; whoever knows the settings' sources turns a problem into a message.
namespace zeroth::arithmetic {

inline constexpr std::int64_t kDefaultMicroBatchSize = 8;  // Transformers' defaults, taken when
inline constexpr std::int64_t kDefaultAccumulation = 1;    // nothing about the batch is given

// How the ranks of a run are divided. Ranks that share their rows (tensor, pipeline and sequence
// parallel) do not enlarge the batch.
struct Grid {
  std::int64_t world_size = 1;
  std::int64_t tensor_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  std::int64_t sequence_parallel = 1;

  friend bool operator==(const Grid&, const Grid&) = default;
};

enum class GridAxis { kWorldSize, kTensorParallel, kPipelineParallel, kSequenceParallel };
enum class GridProblemKind { kNotPositive, kNotDivisible, kOverflow };

struct GridProblem {
  GridProblemKind kind = GridProblemKind::kNotDivisible;
  GridAxis axis = GridAxis::kWorldSize;  // kNotPositive: which
  std::int64_t model_ranks = 0;          // kNotDivisible: tensor x pipeline x sequence
  std::optional<std::int64_t> below;     // kNotDivisible: the nearest world sizes that work
  std::optional<std::int64_t> above;

  friend bool operator==(const GridProblem&, const GridProblem&) = default;
};

// dp = world size / (tp x pp x sp).
[[nodiscard]] std::variant<std::int64_t, GridProblem> data_parallel_ranks(const Grid& grid);

enum class BatchFactor { kTrainBatchSize, kMicroBatchSize, kAccumulationSteps, kDataParallel };

// What is given. "auto" is not given.
struct BatchRequest {
  std::optional<std::int64_t> train_batch_size;
  std::optional<std::int64_t> micro_batch_size;  // rows per rank and forward
  std::optional<std::int64_t> accumulation_steps;
  std::int64_t data_parallel = 1;

  friend bool operator==(const BatchRequest&, const BatchRequest&) = default;
};

struct BatchSolution {
  std::int64_t train_batch_size = 0;
  std::int64_t micro_batch_size = 0;
  std::int64_t accumulation_steps = 0;
  std::int64_t data_parallel = 1;
  bool train_batch_size_inferred = false;
  bool micro_batch_size_inferred = false;
  bool accumulation_steps_inferred = false;
  bool defaults = false;  // nothing was given: the defaults above

  friend bool operator==(const BatchSolution&, const BatchSolution&) = default;
};

enum class BatchProblemKind {
  kNotPositive,        // `factor` is 0 or less
  kTooSmall,           // train_batch_size < dp: `above` is the smallest valid one
  kNotEqual,           // all three given; `product` is what the other factors make
  kNotDivisible,       // two given (or train_batch_size alone): not a multiple of `product`
  kAccumulationAlone,  // neither batch size is given
  kOverflow,           // the product is no 64-bit number
};

// One way to mend a batch: give `factor` this value and leave the other given ones.
struct BatchFix {
  BatchFactor factor = BatchFactor::kTrainBatchSize;
  std::int64_t value = 0;

  friend bool operator==(const BatchFix&, const BatchFix&) = default;
};

struct BatchProblem {
  BatchProblemKind kind = BatchProblemKind::kNotEqual;
  BatchFactor factor = BatchFactor::kTrainBatchSize;  // kNotPositive: which
  std::int64_t product = 0;           // dp times the given micro batch and accumulation
  std::optional<std::int64_t> below;  // nearest train_batch_size that works, below and above
  std::optional<std::int64_t> above;

  friend bool operator==(const BatchProblem&, const BatchProblem&) = default;
};

// Two of the three give the third; train_batch_size or the micro batch alone means accumulation 1;
// nothing at all means the defaults. Nothing is ever rounded.
[[nodiscard]] std::variant<BatchSolution, BatchProblem> solve_batch(const BatchRequest& request);

// Up to three ways to mend a request that has a problem, each changing one given factor and each
// solvable: the nearest train_batch_size first (below, above), then micro batch, then accumulation.
[[nodiscard]] std::vector<BatchFix> fixes_of(const BatchRequest& request);

// The request with one factor set.
[[nodiscard]] BatchRequest with_fix(BatchRequest request, const BatchFix& fix);

}  // namespace zeroth::arithmetic
