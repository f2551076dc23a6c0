#include "plan/activations.h"

#include "arithmetic/loss_chunks.h"
#include "plan/test_support.h"
#include <gtest/gtest.h>

namespace zeroth::plan {
namespace {

// What models really hold beside this: tests/parity/activations_test.cpp.

TEST(Activations, LogitsOfTheReferenceAreTenBytesEachInBf16AndEightInFp32) {
  PlanInput input = input_for({});
  input.fast_kernels = false;
  input.micro_batch_rows = 3;
  const ModelSize size = size_of(input);
  EXPECT_EQ(training_peak(input, size).logits, Bytes(std::int64_t{10} * 3 * 127 * 2048));
  input.compute_bytes = 4;
  EXPECT_EQ(training_peak(input, size).logits, Bytes(std::int64_t{8} * 3 * 127 * 2048));
}

TEST(Activations, FastKernelsHoldAChunkOfLogitsAndNoScores) {
  PlanInput input = input_for(kLlama3);
  const auto peak_at = [&](std::int64_t tokens) {
    input.row_tokens = tokens;
    return training_peak(input, size_of(input));
  };
  EXPECT_LE(peak_at(1024).logits, Bytes(arithmetic::kLogitsAtOnce));
  EXPECT_EQ(peak_at(4096).logits, peak_at(1024).logits);
  const auto growth = [&](std::int64_t from, std::int64_t to) {
    return static_cast<double>(peak_at(to).activations.count()) /
           static_cast<double>(peak_at(from).activations.count());
  };
  EXPECT_NEAR(growth(16384, 32768), 2, 0.05);
  input.fast_kernels = false;
  EXPECT_GT(growth(16384, 32768), 3);
}

TEST(Activations, RecomputationKeepsOneBlockAndTheBordersOfTheOthers) {
  PlanInput input = input_for({.layers = 32, .vocabulary = 64});
  const ModelSize size = size_of(input);
  const Bytes kept = training_peak(input, size).total();
  input.gradient_checkpointing = true;
  const Bytes recomputed = training_peak(input, size).total();
  EXPECT_LT(recomputed * 7, kept);
  EXPECT_GT(recomputed, Bytes(std::int64_t{33} * 128 * 256 * 2));  // the borders
}

TEST(Activations, MoreRowsNeverNeedLess) {
  for (const std::int64_t vocabulary : {512, 8192, 131072}) {
    for (const bool fast : {true, false}) {
      PlanInput input = input_for({.vocabulary = vocabulary});
      input.fast_kernels = fast;
      const ModelSize size = size_of(input);
      Bytes before;
      for (input.micro_batch_rows = 1; input.micro_batch_rows < 64; ++input.micro_batch_rows) {
        const Bytes now = training_peak(input, size).total();
        EXPECT_GT(now, before) << vocabulary << ", rows " << input.micro_batch_rows;
        before = now;
      }
    }
  }
}

TEST(Activations, EvaluationSavesNothing) {
  PlanInput input = input_for({.layers = 16, .vocabulary = 64});
  input.eval_rows = 2;  // twice the rows
  const Bytes training = training_peak(input, size_of(input)).total();
  EXPECT_LT(evaluation_peak(input).total() * 4, training);
}

TEST(Activations, AnEndlessRowFitsNowhereInsteadOfWrapping) {
  PlanInput input = input_for(kLlama3);
  input.row_tokens = std::int64_t{1} << 30;
  input.micro_batch_rows = 1'000'000'000;
  EXPECT_GT(training_peak(input, size_of(input)).total(), Bytes(std::int64_t{1} << 60));
}

}  // namespace
}  // namespace zeroth::plan
