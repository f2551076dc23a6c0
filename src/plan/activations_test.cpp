#include "plan/activations.h"

#include <cmath>

#include "plan/states.h"
#include "plan/test_support.h"
#include <gtest/gtest.h>

namespace zeroth::plan {
namespace {

struct Measured {
  const char* name;
  TestShape shape;
  bool bf16;
  std::int64_t lora_rank;  // 0: all weights
  std::vector<std::string> targets;
  double dropout;
  std::int64_t rows;
  std::int64_t tokens;
  std::int64_t targets_per_row;  // 0: all
  double bytes;                  // the most that tensors held in a forward and backward
};

// Counted by an allocator of tensors around Engine::forward and Engine::backward on such models
// with random weights (LibTorch 1.13.1).
const std::vector<Measured> kMeasured{
    {"full, fp32", {}, false, 0, {}, 0, 2, 128, 0, 29'451'248},
    {"full, bf16", {}, true, 0, {}, 0, 2, 128, 0, 17'899'464},
    {"full, long rows", {.vocabulary = 512}, false, 0, {}, 0, 2, 256, 0, 63'790'080},
    {"full, long rows, bf16", {.vocabulary = 512}, true, 0, {}, 0, 2, 256, 0, 42'031'616},
    {"full, short rows", {.vocabulary = 512}, true, 0, {}, 0, 4, 32, 0, 6'703'616},
    {"full, few targets",
     {.vocabulary = 8192, .tied = true},
     true,
     0,
     {},
     0,
     2,
     128,
     39,
     25'014'792},
    {"full, one short row", {.vocabulary = 8192}, true, 0, {}, 0, 1, 16, 0, 13'244'680},
    {"LoRA", {}, true, 8, {"all"}, 0, 2, 128, 0, 17'883'080},
    {"LoRA, long rows", {.vocabulary = 512}, true, 8, {"all"}, 0, 2, 256, 0, 40'972'288},
    {"LoRA, dropout", {}, false, 8, {"all"}, 0.1, 2, 128, 0, 41'204'680},
    {"LoRA on q and v",
     {.vocabulary = 512},
     true,
     8,
     {"q_proj", "v_proj"},
     0,
     2,
     256,
     0,
     36'851'712},
    {"LoRA on down, dropout",
     {.vocabulary = 512},
     false,
     4,
     {"down_proj"},
     0.1,
     2,
     256,
     0,
     49'133'544},
    {"LoRA on gate and up",
     {.vocabulary = 512},
     true,
     64,
     {"gate_proj", "up_proj"},
     0,
     2,
     256,
     0,
     34'293'760},
    {"LoRA, three blocks of SmolLM",
     {576, 1536, 3, 9, 3, 64, 8192, true},
     true,
     16,
     {"all"},
     0,
     4,
     256,
     0,
     163'732'368},
};

PlanInput input_of(const Measured& run) {
  PlanInput input = input_for(run.shape);
  input.compute_bytes = run.bf16 ? 2 : 4;
  if (run.lora_rank > 0) {
    input.lora = shapes::LoraSettings{
        .rank = run.lora_rank, .dropout = run.dropout, .target_modules = run.targets};
  }
  input.micro_batch_rows = run.rows;
  input.row_tokens = run.tokens;
  input.row_targets = run.targets_per_row;
  return input;
}

TEST(Activations, ThePeakIsWhatWasMeasured) {
  for (const Measured& run : kMeasured) {
    const PlanInput input = input_of(run);
    const Bytes planned = training_peak(input, size_of(input)).total() + row_buffers(input);
    EXPECT_NEAR(static_cast<double>(planned.count()) / run.bytes, 1, 0.015) << run.name;
  }
}

TEST(Activations, LogitsAreTenBytesEachInBf16AndEightInFp32) {
  PlanInput input = input_for({});
  input.micro_batch_rows = 3;
  const ModelSize size = size_of(input);
  EXPECT_EQ(training_peak(input, size).logits, Bytes(std::int64_t{10} * 3 * 127 * 2048));
  input.compute_bytes = 4;
  EXPECT_EQ(training_peak(input, size).logits, Bytes(std::int64_t{8} * 3 * 127 * 2048));
}

TEST(Activations, RecomputationKeepsOneBlockAndTheBordersOfTheOthers) {
  PlanInput input = input_for({.layers = 32, .vocabulary = 64});
  const ModelSize size = size_of(input);
  const Bytes kept = training_peak(input, size).total();
  input.gradient_checkpointing = true;
  const Bytes recomputed = training_peak(input, size).total();
  EXPECT_LT(recomputed * 8, kept);
  EXPECT_GT(recomputed, Bytes(std::int64_t{33} * 128 * 256 * 2));  // the borders
}

TEST(Activations, MoreRowsNeverNeedLess) {
  for (const Measured& run : kMeasured) {
    PlanInput input = input_of(run);
    const ModelSize size = size_of(input);
    Bytes before;
    for (input.micro_batch_rows = 1; input.micro_batch_rows < 64; ++input.micro_batch_rows) {
      const Bytes now = training_peak(input, size).total();
      EXPECT_GT(now, before) << run.name << ", rows " << input.micro_batch_rows;
      before = now;
    }
  }
}

TEST(Activations, EvaluationSavesNothing) {
  PlanInput input = input_for({.layers = 16, .vocabulary = 64});
  input.eval_rows = 2;  // twice the rows
  const Bytes training = training_peak(input, size_of(input)).total();
  EXPECT_LT(evaluation_peak(input).total() * 4, training);
}

// Around Engine::evaluate, as above.
TEST(Activations, EvaluationHoldsWhatWasMeasured) {
  const auto expect = [](const TestShape& shape, bool bf16, std::int64_t tokens, double bytes) {
    PlanInput input = input_for(shape);
    input.compute_bytes = bf16 ? 2 : 4;
    input.row_tokens = tokens;
    input.eval_rows = 2;
    EXPECT_NEAR(static_cast<double>(evaluation_peak(input).total().count()) / bytes, 1, 0.05);
  };
  expect({}, false, 128, 4'950'992);
  expect({}, true, 128, 5'599'184);
  expect({.vocabulary = 512}, false, 256, 12'058'624);
  expect({.vocabulary = 512}, true, 256, 12'058'624);
}

TEST(Activations, AnEndlessRowFitsNowhereInsteadOfWrapping) {
  PlanInput input = input_for(kLlama3);
  input.row_tokens = std::int64_t{1} << 30;
  input.micro_batch_rows = 1'000'000'000;
  EXPECT_GT(training_peak(input, size_of(input)).total(), Bytes(std::int64_t{1} << 60));
}

}  // namespace
}  // namespace zeroth::plan
