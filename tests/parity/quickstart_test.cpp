#include "base/file.h"
#include "base/json.h"
#include "data/load.h"
#include "parity/support.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// The quickstart's model and rows against our own float64 PyTorch script,
// tests/golden/make_reference.py.
namespace zeroth::parity {
namespace {

class Quickstart : public testing::Test {
 protected:
  Quickstart()
      : reference_(golden() / "quickstart/reference.safetensors"),
        trace_(parse_json(read_file(golden() / "quickstart/trace.json", ErrorKind::kData),
                          "trace.json",
                          ErrorKind::kData)),
        batch_(batch_of(tensor(reference_, "input_ids"), tensor(reference_, "labels"))) {}

  [[nodiscard]] static std::filesystem::path example() {
    return std::filesystem::path(ZEROTH_SOURCE_DIR) / "examples/quickstart";
  }

  [[nodiscard]] static TraineeOptions options(double rate, double weight_decay) {
    TraineeOptions full{.folder = example() / "base"};
    full.optimizer = optim::make_adamw({.weight_decay = weight_decay});
    full.engine.schedule = constant_rate(rate);
    return full;
  }

  [[nodiscard]] static TraineeOptions lora_options() {
    TraineeOptions lora = options(2e-3, 0);
    lora.model.lora = shapes::LoraSettings{.rank = 4, .alpha = 8};
    lora.adapter = golden() / "quickstart/lora_init/adapter_model.safetensors";
    return lora;
  }

  void expect_trace(engine::Engine& engine, const Json& trace) {
    for (const Json& expected : trace) {
      const engine::StepReport report = train_window(engine, {batch_});
      EXPECT_NEAR(report.loss.mean() / expected[0].get<double>(), 1.0, 1e-4)
          << "step " << report.step;
      EXPECT_NEAR(report.grad_norm / expected[1].get<double>(), 1.0, 1e-3)
          << "step " << report.step;
    }
  }

  formats::SafetensorsFile reference_;
  Json trace_;
  models::TokenBatch batch_;
};

TEST_F(Quickstart, RowsAreEncodedAsTheScriptDoes) {
  const text::Tokenizer tokenizer = text::Tokenizer::load(example() / "base");
  const data::Dataset dataset =
      data::load_examples({example() / "data/train.json"},
                          tokenizer,
                          {.prompt_template = "alpaca", .max_samples = 8, .embedding_rows = 608});
  const at::Tensor lengths = tensor(reference_, "lengths");
  ASSERT_EQ(dataset.examples.size(), 8U);
  for (std::int64_t row = 0; row < 8; ++row) {
    const data::Example& example = dataset.examples[static_cast<std::size_t>(row)];
    ASSERT_EQ(static_cast<std::int64_t>(example.input_ids.size()),
              lengths[row].item<std::int64_t>());
    for (std::size_t t = 0; t < example.input_ids.size(); ++t) {
      const auto place = static_cast<std::int64_t>(t);
      EXPECT_EQ(example.input_ids[t], batch_.ids_BT[row][place].item<std::int64_t>());
      EXPECT_EQ(example.labels[t], batch_.labels_BT[row][place].item<std::int64_t>());
    }
  }
}

TEST_F(Quickstart, LogitsAgreeWithFloat64) {
  Trainee trainee = make_trainee(options(0, 0));
  const at::Tensor value = logits(*trainee.engine, batch_.ids_BT.narrow(0, 0, 4));
  EXPECT_LE(worst_excess(value, tensor(reference_, "logits"), 1e-4, 1e-5), 1.0);
  EXPECT_LT(relative_norm(value, tensor(reference_, "logits")), 2e-6);
}

TEST_F(Quickstart, GradientsAgreeWithFloat64) {
  Trainee trainee = make_trainee(options(0, 0));
  const engine::Loss loss = trainee.engine->forward(batch_);
  EXPECT_NEAR(loss.mean(), trace_["loss"].get<double>(), 2e-5);
  EXPECT_EQ(loss.weight, trace_["target_tokens"].get<std::int64_t>());
  trainee.engine->backward(loss);
  int compared = 0;
  for (const auto& [name, view] : reference_.tensors()) {
    if (!name.starts_with("grad.")) {
      continue;
    }
    // Matrices are stored as products with random signs, which keep the size of a difference.
    at::Tensor value = trainee.engine->gradient_value(name.substr(5)).to(at::kDouble);
    if (value.dim() == 2) {
      const at::Tensor signs = tensor(reference_, "signs." + std::to_string(value.size(1)));
      value = at::matmul(value, signs.to(at::kDouble));
    }
    EXPECT_LT(relative_norm(value, tensor(reference_, name)), 1e-4) << name;
    ++compared;
  }
  EXPECT_EQ(compared, 38);
}

TEST_F(Quickstart, LoraGradientsAgreeWithFloat64) {
  Trainee trainee = make_trainee(lora_options());
  const engine::Loss loss = trainee.engine->forward(batch_);
  EXPECT_NEAR(loss.mean(), trace_["lora_loss"].get<double>(), 2e-5);
  trainee.engine->backward(loss);
  const std::string prefix = "lora_grad.base_model.model.";
  int compared = 0;
  for (const auto& [name, view] : reference_.tensors()) {
    if (name.starts_with(prefix)) {
      EXPECT_LT(relative_norm(trainee.engine->gradient_value(name.substr(prefix.size())),
                              tensor(reference_, name)),
                1e-4)
          << name;
      ++compared;
    }
  }
  EXPECT_EQ(compared, 56);
}

TEST_F(Quickstart, TwentyFullStepsFollowTheScript) {
  Trainee trainee = make_trainee(options(1e-3, 0.01));
  expect_trace(*trainee.engine, trace_["full [loss, grad_norm]"]);
}

TEST_F(Quickstart, ThirtyLoraStepsFollowTheScript) {
  Trainee trainee = make_trainee(lora_options());
  expect_trace(*trainee.engine, trace_["lora [loss, grad_norm]"]);
}

}  // namespace
}  // namespace zeroth::parity
