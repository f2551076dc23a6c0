#include "base/file.h"
#include "base/json.h"
#include "generate/generate.h"
#include "parity/support.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// Every family against all that Transformers' own code computed of it: nine tiny models with random
// weights under ../shared/data. golden_families_test.cpp has a selection that is always there.
namespace zeroth::parity {
namespace {

namespace fs = std::filesystem;

// Row 1 is padded on the right from here on; logits there mean nothing.
constexpr std::int64_t kRealInRow1 = 36;
constexpr double kLogits = 3e-5;

fs::path root() {
  return shared_data() / "reference/transformers";
}

Json read_json(const fs::path& path) {
  return parse_json(read_file(path, ErrorKind::kData), path.string(), ErrorKind::kData);
}

class FamilyReference : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (!fs::exists(root())) {
      GTEST_SKIP() << "needs ../shared/data";
    }
  }

  [[nodiscard]] static fs::path file(const std::string& name) { return root() / GetParam() / name; }

  [[nodiscard]] static formats::SafetensorsFile tensors(const std::string& name) {
    return formats::SafetensorsFile(file(name + ".safetensors"));
  }

  [[nodiscard]] static TraineeOptions options(const fs::path& config = {}) {
    TraineeOptions plain{.folder = root() / GetParam(), .config = config};
    plain.engine.max_grad_norm = 0;
    plain.engine.schedule = constant_rate(1e-3);
    return plain;
  }

  static models::TokenBatch inputs() {
    const formats::SafetensorsFile stored = tensors("inputs");
    return batch_of(tensor(stored, "input_ids"), tensor(stored, "labels"));
  }

  static double logits_excess(const at::Tensor& value, const at::Tensor& expected) {
    return std::max(
        worst_excess(value[0], expected[0], kLogits, 0),
        worst_excess(
            value[1].narrow(0, 0, kRealInRow1), expected[1].narrow(0, 0, kRealInRow1), kLogits, 0));
  }

  // The config with some fields replaced, as a file.
  static fs::path changed_config(const std::string& form, const Json& change) {
    Json config = read_json(file(form));
    if (change.contains("use_sliding_window")) {
      config.erase("layer_types");  // a list beats the rule that the change is about
    }
    config.update(change);
    const fs::path path = fs::path(testing::TempDir()) /
                          (std::string("zeroth_changed_") + GetParam() + "_config.json");
    write_file_atomically(path, config.dump());
    return path;
  }
};

INSTANTIATE_TEST_SUITE_P(All,
                         FamilyReference,
                         testing::Values("llama3",
                                         "llama_linear",
                                         "llama_yarn",
                                         "mistral",
                                         "qwen2",
                                         "qwen3",
                                         "gemma",
                                         "gemma2",
                                         "gemma3_text"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(FamilyReference, LogitsLossAndGradients) {
  Trainee trainee = make_trainee(options());
  const models::TokenBatch batch = inputs();
  const formats::SafetensorsFile expected = tensors("golden");
  EXPECT_LE(logits_excess(logits(*trainee.engine, batch.ids_BT), tensor(expected, "logits")), 1.0);
  const engine::Loss loss = trainee.engine->forward(batch);
  EXPECT_NEAR(loss.mean(), tensor(expected, "loss").item<double>(), 3e-5);
  trainee.engine->backward(loss);
  const formats::SafetensorsFile gradients = tensors("grads");
  EXPECT_GT(gradients.tensors().size(), 30U);
  for (const auto& [name, view] : gradients.tensors()) {
    EXPECT_LT(relative_norm(trainee.engine->gradient_value(name), tensor(gradients, name)), 1e-4)
        << name;
  }
}

TEST_P(FamilyReference, EveryReleasesConfigGivesTheSameBits) {
  const models::TokenBatch batch = inputs();
  const auto logits_of = [&](const char* form) {
    return logits(*make_trainee(options(file(form))).engine, batch.ids_BT);
  };
  const at::Tensor now = logits_of("config.json");
  EXPECT_TRUE(at::equal(logits_of("config_v452.json"), now));
  EXPECT_TRUE(at::equal(logits_of("config_v5.json"), now));
}

TEST_P(FamilyReference, ThreeAdamWSteps) {
  Trainee trainee = make_trainee(options());
  const at::Tensor losses = tensor(tensors("golden"), "step_losses");
  const models::TokenBatch batch = inputs();
  for (int step = 0; step < 3; ++step) {
    EXPECT_NEAR(
        train_window(*trainee.engine, {batch}).loss.mean(), losses[step].item<double>(), 3e-5);
  }
  EXPECT_NEAR(trainee.engine->evaluate(batch).mean(), losses[3].item<double>(), 3e-5);
  const formats::SafetensorsFile after = tensors("after3");
  std::vector<at::Tensor> values;
  std::vector<at::Tensor> expected;
  for (const auto& [name, view] : after.tensors()) {
    values.push_back(trainee.engine->parameter_value(name).flatten());
    expected.push_back(tensor(after, name).flatten());
    // AdamW divides by the gradient's size: where that is near zero, noise moves single elements.
    EXPECT_LT(relative_norm(values.back(), expected.back()), 3e-5) << name;
  }
  EXPECT_LT(relative_norm(at::cat(values), at::cat(expected)), 1e-5);
}

TEST_P(FamilyReference, OneFieldChanged) {
  const Json info = read_json(file("info.json"));
  const formats::SafetensorsFile expected = tensors("variants");
  const models::TokenBatch batch = inputs();
  const at::Tensor places = at::tensor({5, 20, 35, 47}, at::kLong);
  for (const auto& [name, variant] : info["variants"].items()) {
    SCOPED_TRACE(name);
    Trainee trainee =
        make_trainee(options(changed_config("config.json", variant["config_change"])));
    const at::Tensor rows = logits(*trainee.engine, batch.ids_BT).index_select(1, places);
    const at::Tensor stored = tensor(expected, name + ".logits");
    EXPECT_LE(worst_excess(rows[0], stored[0], kLogits, 0), 1.0);
    EXPECT_LE(worst_excess(rows[1].narrow(0, 0, 3), stored[1].narrow(0, 0, 3), kLogits, 0), 1.0);
    const engine::StepReport report = train_window(*trainee.engine, {batch});
    EXPECT_NEAR(report.loss.mean(), tensor(expected, name + ".loss").item<double>(), 3e-5);
    EXPECT_NEAR(report.grad_norm / tensor(expected, name + ".grad_norm").item<double>(), 1, 1e-4);
    const Trainee old_form =
        make_trainee(options(changed_config("config_v452.json", variant["config_change"])));
    EXPECT_TRUE(at::equal(logits(*old_form.engine, batch.ids_BT).index_select(1, places), rows));
  }
}

TEST_P(FamilyReference, GreedyTokensWithACache) {
  TraineeOptions frozen = options();
  frozen.model.trainable = false;
  Trainee trainee = make_trainee(std::move(frozen));
  const formats::SafetensorsFile expected = tensors("generate");
  const at::Tensor prompt = tensor(expected, "prompt")[0];
  const at::Tensor tokens = tensor(expected, "tokens")[0];
  const auto* ids = prompt.data_ptr<std::int64_t>();
  const auto answers = generate::generate(*trainee.engine,
                                          {{.ids = {ids, ids + prompt.numel()}}},
                                          {.max_new_tokens = 32,
                                           .max_positions = 256,
                                           .num_layers = trainee.model.config.num_hidden_layers});
  const auto* fresh = tokens.data_ptr<std::int64_t>();
  EXPECT_EQ(answers.front().ids, std::vector<std::int64_t>(fresh, fresh + 32));
}

TEST_P(FamilyReference, LossInBf16) {
  TraineeOptions narrow = options();
  narrow.model.dtype = at::kBFloat16;
  Trainee trainee = make_trainee(std::move(narrow));
  const double expected = tensor(tensors("golden"), "loss").item<double>();
  EXPECT_NEAR(trainee.engine->evaluate(inputs()).mean() / expected, 1, 1e-2);
}

}  // namespace
}  // namespace zeroth::parity
