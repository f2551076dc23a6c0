#include "parity/runs.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// The batch is the batch: the update depends on which rows form it, not on how they are cut.
namespace zeroth::parity {
namespace {

// Eight rows of very different lengths and masks, padded to the longest.
models::TokenBatch uneven_rows() {
  at::manual_seed(11);
  constexpr std::int64_t kRows = 8;
  constexpr std::int64_t kTokens = 40;
  const at::Tensor ids = at::randint(3, 512, {kRows, kTokens}, at::kLong);
  at::Tensor labels = ids.clone();
  for (std::int64_t row = 0; row < kRows; ++row) {
    const std::int64_t length = 3 + row * 5;
    labels[row].narrow(0, length, kTokens - length).fill_(-100);
    labels[row].narrow(0, 0, 1 + row % 3).fill_(-100);
  }
  return batch_of(ids, labels);
}

// Cuts away padding that no row of the part needs, as the loader does.
models::TokenBatch trimmed(const models::TokenBatch& batch,
                           std::int64_t first,
                           std::int64_t count) {
  models::TokenBatch part = rows_of(batch, first, count);
  const std::int64_t longest = 3 + (first + count - 1) * 5;
  part.ids_BT = part.ids_BT.narrow(1, 0, longest).contiguous();
  part.labels_BT = part.labels_BT.narrow(1, 0, longest).contiguous();
  return part;
}

struct Cut {
  bool lora;
  double dropout;
  bool sgd;
};

Trainee trainee_for(const Cut& cut) {
  TraineeOptions options{.folder = golden() / "transformers/llama3"};
  if (cut.lora) {
    options.model.lora = shapes::LoraSettings{.rank = 4, .alpha = 8, .dropout = cut.dropout};
  }
  if (cut.sgd) {
    options.optimizer = optim::make_sgd({.momentum = 0.9});
  }
  options.engine.max_grad_norm = 0.5;
  options.engine.schedule = constant_rate(cut.sgd ? 0.1 : 1e-3);
  return make_trainee(std::move(options));
}

void train(Trainee& trainee, const models::TokenBatch& rows, std::int64_t micro_rows) {
  for (int update = 0; update < 10; ++update) {
    std::vector<models::TokenBatch> micro_batches;
    for (std::int64_t first = 0; first < 8; first += micro_rows) {
      micro_batches.push_back(trimmed(rows, first, micro_rows));
    }
    ASSERT_TRUE(train_window(*trainee.engine, micro_batches).updated);
  }
}

class Accumulation : public testing::TestWithParam<Cut> {};

INSTANTIATE_TEST_SUITE_P(Cuts,
                         Accumulation,
                         testing::Values(Cut{false, 0, false},
                                         Cut{false, 0, true},
                                         Cut{true, 0, false},
                                         Cut{true, 0.3, false},
                                         Cut{true, 0.3, true}),
                         [](const auto& test) {
                           return std::string(test.param.lora ? "lora" : "full") +
                                  (test.param.dropout > 0 ? "_dropout" : "") +
                                  (test.param.sgd ? "_sgd" : "_adamw");
                         });

TEST_P(Accumulation, N01_OneByEightEqualsEightByOne) {
  const models::TokenBatch rows = uneven_rows();
  Trainee accumulated = trainee_for(GetParam());
  Trainee at_once = trainee_for(GetParam());
  train(accumulated, rows, 1);
  train(at_once, rows, 8);
  EXPECT_LT(relative_norm(trained_values(accumulated), trained_values(at_once)), 1e-5);
}

TEST(N03, TheReportedLossDoesNotDependOnAccumulation) {
  const models::TokenBatch rows = uneven_rows();
  for (const std::int64_t micro_rows : {1, 2, 4, 8}) {
    Trainee trainee = trainee_for({false, 0, false});
    std::vector<models::TokenBatch> micro_batches;
    for (std::int64_t first = 0; first < 8; first += micro_rows) {
      micro_batches.push_back(trimmed(rows, first, micro_rows));
    }
    const double expected = trainee.engine->evaluate(rows).mean();
    EXPECT_NEAR(train_window(*trainee.engine, micro_batches).loss.mean(), expected, 1e-5);
  }
}

TEST(N06, TheGradientNormDoesNotDependOnAccumulation) {
  const models::TokenBatch row = rows_of(uneven_rows(), 7, 1);
  Trainee once = trainee_for({false, 0, false});
  Trainee four_times = trainee_for({false, 0, false});
  const double expected = train_window(*once.engine, {row}).grad_norm;
  EXPECT_NEAR(
      train_window(*four_times.engine, {row, row, row, row}).grad_norm / expected, 1.0, 1e-6);
}

TEST(N14, AShorterLastWindowIsWeightedByItsOwnTokens) {
  const models::TokenBatch rows = uneven_rows();
  TraineeOptions options{.folder = golden() / "transformers/llama3"};
  options.engine = {.accumulation_steps = 4, .schedule = constant_rate(1e-3)};
  Trainee trainee = make_trainee(std::move(options));
  Trainee alone = trainee_for({false, 0, false});
  trainee.engine->set_window(2);
  trainee.engine->backward(trainee.engine->forward(rows_of(rows, 0, 1)));
  EXPECT_FALSE(trainee.engine->step().window_finished);
  trainee.engine->backward(trainee.engine->forward(rows_of(rows, 1, 1)));
  const engine::StepReport report = trainee.engine->step();
  EXPECT_TRUE(report.updated);
  EXPECT_NEAR(
      report.grad_norm / train_window(*alone.engine, {rows_of(rows, 0, 2)}).grad_norm, 1.0, 1e-5);
}

TEST(D12, AWindowWithoutTargetsSkipsTheUpdateAndChangesNothing) {
  models::TokenBatch rows = rows_of(uneven_rows(), 0, 2);
  rows.labels_BT.fill_(-100);
  rows.num_targets = 0;
  Trainee trainee = trainee_for({false, 0, false});
  const at::Tensor before = trainee.engine->parameter_value("model.norm.weight");
  const engine::StepReport report = train_window(*trainee.engine, {rows});
  EXPECT_TRUE(report.window_finished);
  EXPECT_FALSE(report.updated);
  EXPECT_EQ(report.attempts, 1);
  EXPECT_EQ(report.step, 0);
  EXPECT_TRUE(at::equal(before, trainee.engine->parameter_value("model.norm.weight")));
}

TEST(Determinism, TheSameRunGivesTheSameBits) {
  const models::TokenBatch rows = uneven_rows();
  Trainee first = trainee_for({true, 0.3, false});
  Trainee second = trainee_for({true, 0.3, false});
  train(first, rows, 2);
  train(second, rows, 2);
  const std::string name = "model.layers.2.mlp.down_proj.lora_B.weight";
  EXPECT_TRUE(at::equal(first.engine->parameter_value(name), second.engine->parameter_value(name)));
}

TEST(Bf16, ModelStatesTakeEighteenBytesPerTrainableParameter) {
  TraineeOptions options{.folder = golden() / "transformers/llama3"};
  options.model.dtype = at::kBFloat16;
  Trainee trainee = make_trainee(std::move(options));
  const auto trainable = static_cast<double>(trainee.model.num_trainable());
  EXPECT_NEAR(
      static_cast<double>(trainee.engine->tally().model_state_bytes()) / trainable, 18.0, 0.36);
}

}  // namespace
}  // namespace zeroth::parity
