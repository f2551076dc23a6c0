#include "plan/activations.h"

#include "base/text.h"
#include "kernels/choice.h"
#include "models/model.h"
#include "parity/support.h"
#include "plan/test_support.h"
#include "shapes/lora.h"
#include <gtest/gtest.h>

// What a forward and backward hold, planned and counted, on models with random weights.
namespace zeroth::parity {
namespace {

using memory::Purpose;
using plan::PlanInput;
using plan::TestShape;

struct Run {
  const char* name;
  TestShape shape;
  bool bf16 = true;
  std::int64_t rows = 2;
  std::int64_t tokens = 128;
  std::int64_t targets = 0;          // of a row; 0: all
  std::int64_t lora_rank = 0;        // 0: all weights
  const char* lora_targets = "all";  // with commas between
  double dropout = 0;
};

const std::vector<Run> kRuns{
    {.name = "full_fp32", .bf16 = false},
    {.name = "full_bf16"},
    {.name = "full_long_rows", .shape = {.vocabulary = 512}, .bf16 = false, .tokens = 256},
    {.name = "full_long_rows_bf16", .shape = {.vocabulary = 512}, .tokens = 256},
    {.name = "full_short_rows", .shape = {.vocabulary = 512}, .rows = 4, .tokens = 32},
    {.name = "full_few_targets", .shape = {.vocabulary = 8192, .tied = true}, .targets = 39},
    {.name = "full_one_short_row", .shape = {.vocabulary = 8192}, .rows = 1, .tokens = 16},
    {.name = "full_many_logits", .shape = {.vocabulary = 65536}, .rows = 4},
    {.name = "lora", .lora_rank = 8},
    {.name = "lora_long_rows", .shape = {.vocabulary = 512}, .tokens = 256, .lora_rank = 8},
    {.name = "lora_dropout", .bf16 = false, .lora_rank = 8, .dropout = 0.1},
    {.name = "lora_q_and_v",
     .shape = {.vocabulary = 512},
     .tokens = 256,
     .lora_rank = 8,
     .lora_targets = "q_proj,v_proj"},
    {.name = "lora_down_dropout",
     .shape = {.vocabulary = 512},
     .bf16 = false,
     .tokens = 256,
     .lora_rank = 4,
     .lora_targets = "down_proj",
     .dropout = 0.1},
    {.name = "lora_gate_and_up",
     .shape = {.vocabulary = 512},
     .tokens = 256,
     .lora_rank = 64,
     .lora_targets = "gate_proj,up_proj"},
    {.name = "lora_three_blocks_of_smollm",
     .shape = {576, 1536, 3, 9, 3, 64, 8192, true},
     .rows = 4,
     .tokens = 256,
     .lora_rank = 16},
};

PlanInput input_of(const Run& run, bool fast) {
  PlanInput input = plan::input_for(run.shape);
  input.compute_bytes = run.bf16 ? 2 : 4;
  if (run.lora_rank > 0) {
    input.lora = shapes::LoraSettings{.rank = run.lora_rank,
                                      .dropout = run.dropout,
                                      .target_modules = split(run.lora_targets, ',')};
  }
  input.micro_batch_rows = input.eval_rows = run.rows;
  input.row_tokens = run.tokens;
  input.row_targets = run.targets;
  input.fast_kernels = fast;
  return input;
}

models::TokenBatch batch_of_run(const Run& run) {
  const at::Tensor ids = patterned_ids(run.rows, run.tokens);
  const at::Tensor labels = ids.clone();
  if (run.targets > 0) {
    labels.narrow(1, 0, run.tokens - run.targets).fill_(-100);
  }
  return batch_of(ids, labels);
}

std::int64_t at_work(const memory::Tally& tally) {
  const memory::ByPurpose most = tally.at_peak();
  return most[static_cast<std::size_t>(Purpose::kActivations)] +
         most[static_cast<std::size_t>(Purpose::kLogits)];
}

struct Held {
  std::int64_t training = 0, evaluation = 0;
};

Trainee random_trainee(const Run& run, const PlanInput& input, bool trains) {
  Trainee trainee;
  engine::EngineOptions options;
  options.dtype = run.bf16 ? at::kBFloat16 : at::kFloat;
  trainee.model = models::random_model(
      input.model,
      {.dtype = options.dtype, .lora = trains ? input.lora : std::nullopt, .trainable = trains});
  trainee.engine = std::make_unique<engine::Engine>(trainee.model.units,
                                                    optim::make_adamw({}),
                                                    options,
                                                    comm::make_local_communicator(),
                                                    std::make_shared<memory::Tally>());
  return trainee;
}

Held held_by(const Run& run, const PlanInput& input) {
  const models::TokenBatch batch = batch_of_run(run);
  const Trainee training = random_trainee(run, input, /*trains=*/true);
  for (int i = 0; i < 2; ++i) {
    training.engine->backward(training.engine->forward(batch));
  }
  const Trainee evaluating = random_trainee(run, input, /*trains=*/false);
  (void)evaluating.engine->evaluate(batch);
  return {at_work(training.engine->tally()), at_work(evaluating.engine->tally())};
}

class Activations : public testing::TestWithParam<std::tuple<Run, kernels::Choice>> {};

INSTANTIATE_TEST_SUITE_P(Kernels,
                         Activations,
                         testing::Combine(testing::ValuesIn(kRuns),
                                          testing::Values(kernels::Choice::kAuto,
                                                          kernels::Choice::kReference)),
                         [](const auto& test) {
                           const bool fast = std::get<1>(test.param) == kernels::Choice::kAuto;
                           return std::string(std::get<0>(test.param).name) +
                                  (fast ? "" : "_reference");
                         });

TEST_P(Activations, ThePeakIsWhatIsHeld) {
  const auto& [run, choice] = GetParam();
  const kernels::ChoiceScope scope(choice);
  const PlanInput input = input_of(run, choice == kernels::Choice::kAuto);
  const Held held = held_by(run, input);
  const auto ratio = [](plan::Bytes planned, std::int64_t counted) {
    return static_cast<double>(planned.count()) / static_cast<double>(counted);
  };
  const bool fast = choice == kernels::Choice::kAuto;
  EXPECT_NEAR(ratio(training_peak(input, size_of(input)).total(), held.training), 1, 0.02);
  EXPECT_NEAR(ratio(evaluation_peak(input).total(), held.evaluation), 1, fast ? 0.01 : 0.07);
}

}  // namespace
}  // namespace zeroth::parity
