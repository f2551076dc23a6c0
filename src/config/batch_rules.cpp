#include "config/batch_rules.h"

#include <optional>
#include <vector>

#include "arithmetic/batch.h"
#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

using arithmetic::BatchFactor;
using arithmetic::BatchFix;
using arithmetic::BatchProblem;
using arithmetic::BatchProblemKind;
using arithmetic::BatchRequest;
using arithmetic::BatchSolution;

constexpr auto kTrain = "train_batch_size";
constexpr auto kMicro = "per_device_train_batch_size";
constexpr auto kAccumulation = "gradient_accumulation_steps";

std::int64_t axis(const Values& values, std::initializer_list<const char*> names) {
  std::int64_t size = 1;
  for (const char* name : names) {
    if (find_declaration(name) != nullptr && values[name].is_number_integer()) {
      size = std::max<std::int64_t>(size, values[name].get<std::int64_t>());
    }
  }
  return size;
}

std::optional<std::int64_t> written(const Values& values, const char* key) {
  return values.given(key) ? std::optional(values[key].get<std::int64_t>()) : std::nullopt;
}

std::string with_source(const Values& values, const char* key) {
  return values.given(key)
             ? fmt::format("{} {} ({})", key, shown(values[key]), values.source(key).text)
             : fmt::format("{} not given", key);
}

std::string ranks_with_source(const GridInForce& grid) {
  const bool divided = grid.dp != grid.world_size;
  return divided
             ? fmt::format("data-parallel ranks {} (world size {} ({}) / {} that share their rows)",
                           grid.dp,
                           grid.world_size,
                           grid.source,
                           grid.world_size / grid.dp)
             : fmt::format("ranks {} ({})", grid.dp, grid.source);
}

std::string name_of(BatchFactor factor) {
  switch (factor) {
    case BatchFactor::kTrainBatchSize:
      return kTrain;
    case BatchFactor::kMicroBatchSize:
      return kMicro;
    case BatchFactor::kAccumulationSteps:
      return kAccumulation;
    case BatchFactor::kDataParallel:
      return "ranks";
  }
  return "";
}

std::string what_is_wrong(const BatchProblem& problem, const BatchRequest& request) {
  const std::int64_t train = request.train_batch_size.value_or(0);
  switch (problem.kind) {
    case BatchProblemKind::kTooSmall:
      return fmt::format("train_batch_size {} is smaller than dp {}", train, request.data_parallel);
    case BatchProblemKind::kNotEqual:
      return fmt::format("train_batch_size {} is not {} x {} x {} = {}",
                         train,
                         *request.micro_batch_size,
                         *request.accumulation_steps,
                         request.data_parallel,
                         problem.product);
    case BatchProblemKind::kNotDivisible:
      return fmt::format("train_batch_size {} is not a multiple of {}", train, problem.product);
    case BatchProblemKind::kOverflow:
      return "the global batch is no 64-bit number";
    default:
      return fmt::format("{} must be 1 or more", name_of(problem.factor));
  }
}

std::string message_of(const BatchProblem& problem,
                       const BatchRequest& request,
                       const Values& values,
                       const GridInForce& grid) {
  std::string text = what_is_wrong(problem, request) +
                     ": it is micro-batch x accumulation x data-parallel ranks, with\n    " +
                     with_source(values, kTrain) + "\n    " + with_source(values, kMicro) +
                     "\n    " + with_source(values, kAccumulation) + "\n    " +
                     ranks_with_source(grid);
  for (const BatchFix& fix : arithmetic::fixes_of(request)) {
    const auto solved = arithmetic::solve_batch(arithmetic::with_fix(request, fix));
    const auto* solution = std::get_if<BatchSolution>(&solved);
    if (solution != nullptr) {
      text += fmt::format("\n    mend: --{} {} gives {} = {} x {} x {}",
                          name_of(fix.factor),
                          fix.value,
                          solution->train_batch_size,
                          solution->micro_batch_size,
                          solution->accumulation_steps,
                          solution->data_parallel);
    }
  }
  return text;
}

void put_inferred(Values& values, const char* key, std::int64_t value, const std::string& how) {
  Setting setting = values.setting(key);
  setting.value = value;
  setting.source = {SourceKind::kRule, how};
  values.put(key, std::move(setting));
}

void put_solution(const BatchSolution& solution, Values& values) {
  const auto [train, micro, accumulation] =
      std::tuple(solution.train_batch_size, solution.micro_batch_size, solution.accumulation_steps);
  if (solution.train_batch_size_inferred) {
    put_inferred(values,
                 kTrain,
                 train,
                 fmt::format("{} x {} x {}", micro, accumulation, solution.data_parallel));
  }
  if (solution.micro_batch_size_inferred && values.given(kTrain)) {
    put_inferred(
        values,
        kMicro,
        micro,
        fmt::format("derived: {} / ({} x {})", train, accumulation, solution.data_parallel));
  }
  const bool derived =
      solution.accumulation_steps_inferred && values.given(kTrain) && values.given(kMicro);
  if (derived) {
    put_inferred(values,
                 kAccumulation,
                 accumulation,
                 fmt::format("derived: {} / ({} x {})", train, micro, solution.data_parallel));
  }
}

// In a ds_config.json accumulation alone says nothing about the batch; on the command line the
// micro-batch has Transformers' default, and "auto" asks for it.
bool defaults_to_micro_batch(const Values& values) {
  return values.source(kAccumulation).kind != SourceKind::kFile ||
         !values.setting(kMicro).auto_in.empty() || !values.setting(kTrain).auto_in.empty() ||
         values.given("accelerate_config");
}

void add_problem(const std::string& message, const Values& values, Problems& problems) {
  std::vector<std::string> sources;
  for (const char* key : {kTrain, kMicro, kAccumulation}) {
    if (values.given(key)) {
      sources.push_back(values.source(key).text);
    }
  }
  problems.add(
      {.kind = ProblemKind::kBatch, .key = kTrain, .message = message, .sources = sources});
}

std::string world_size_source(const Values& values, const Placement& place) {
  const Source& source = values.source("ranks");
  if (source.kind == SourceKind::kDefault) {
    return "default: no RANK in the environment, no --ranks";
  }
  return place.launched() && source.text.empty() ? place.source + " (environment)" : source.text;
}

}  // namespace

GridInForce solve_grid(const Values& values, const Placement& place, Problems& problems) {
  GridInForce grid{.world_size = values["ranks"].get<std::int64_t>(),
                   .pp = axis(values, {"pipeline.stages"}),
                   .tp = axis(values, {"tensor_parallel.autotp_size"}),
                   .sp = axis(values, {"sequence_parallel_size"}),
                   .source = world_size_source(values, place)};
  const auto solved = arithmetic::data_parallel_ranks({.world_size = grid.world_size,
                                                       .tensor_parallel = grid.tp,
                                                       .pipeline_parallel = grid.pp,
                                                       .sequence_parallel = grid.sp});
  if (const auto* dp = std::get_if<std::int64_t>(&solved)) {
    grid.dp = *dp;
  } else {
    problems.add(
        {.kind = ProblemKind::kBatch,
         .key = "ranks",
         .message = fmt::format("world size {} ({}) is not a multiple of the {} ranks that "
                                "share their rows (tensor parallel {} x pipeline {} x sequence "
                                "parallel {})",
                                grid.world_size,
                                grid.source,
                                grid.tp * grid.pp * grid.sp,
                                grid.tp,
                                grid.pp,
                                grid.sp),
         .sources = {grid.source}});
  }
  return grid;
}

void solve_batch(Values& values, const GridInForce& grid, Problems& problems) {
  for (const char* key : {kTrain, kMicro, kAccumulation}) {
    if (values.in_conflict(key)) {
      return;  // said already; which of the values counts is not known
    }
  }
  BatchRequest request{.train_batch_size = written(values, kTrain),
                       .micro_batch_size = written(values, kMicro),
                       .accumulation_steps = written(values, kAccumulation),
                       .data_parallel = grid.dp};
  const bool accumulation_alone =
      request.accumulation_steps && !request.train_batch_size && !request.micro_batch_size;
  if (accumulation_alone && !defaults_to_micro_batch(values)) {
    add_problem(
        fmt::format("{} alone does not say how large the batch is: give train_batch_size or "
                    "train_micro_batch_size_per_gpu too",
                    with_source(values, kAccumulation)),
        values,
        problems);
    return;
  }
  if (accumulation_alone) {
    request.micro_batch_size = arithmetic::kDefaultMicroBatchSize;
  }
  const auto solved = arithmetic::solve_batch(request);
  if (const auto* solution = std::get_if<BatchSolution>(&solved)) {
    put_solution(*solution, values);
  } else {
    add_problem(
        message_of(std::get<BatchProblem>(solved), request, values, grid), values, problems);
  }
}

}  // namespace zeroth::config
