#include "base/file.h"
#include "base/json.h"
#include "parity/support.h"
#include "shapes/families.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// The real Transformers, PEFT and Trainer on a LLaMA with Llama-3 rope scaling; their numbers are
// in tests/golden (made from random weights; see its README for versions).
namespace zeroth::parity {
namespace {

std::filesystem::path reference(const std::string& name) {
  return golden() / "transformers" / name;
}

class Llama3 : public testing::Test {
 protected:
  [[nodiscard]] static TraineeOptions options() {
    TraineeOptions plain{.folder = reference("llama3")};
    plain.engine.max_grad_norm = 0;
    plain.engine.schedule = constant_rate(1e-3);
    return plain;
  }

  static models::TokenBatch inputs() {
    const formats::SafetensorsFile file(reference("llama3/inputs.safetensors"));
    return batch_of(tensor(file, "input_ids"), tensor(file, "labels"));
  }

  // Row 1 is padded on the right from position 36; logits there mean nothing.
  static double logits_excess(const at::Tensor& value, const at::Tensor& expected) {
    return std::max(
        worst_excess(value[0], expected[0], 2e-5, 1e-5),
        worst_excess(value[1].narrow(0, 0, 36), expected[1].narrow(0, 0, 36), 2e-5, 1e-5));
  }
};

TEST_F(Llama3, LogitsLossAndGradients) {
  Trainee trainee = make_trainee(options());
  const models::TokenBatch batch = inputs();
  const formats::SafetensorsFile expected(reference("llama3/golden.safetensors"));
  EXPECT_LE(logits_excess(logits(*trainee.engine, batch.ids_BT), tensor(expected, "logits")), 1.0);
  const engine::Loss loss = trainee.engine->forward(batch);
  EXPECT_NEAR(loss.mean(), tensor(expected, "loss").item<double>(), 1e-5);
  trainee.engine->backward(loss);
  const formats::SafetensorsFile gradients(reference("llama3/grads.safetensors"));
  EXPECT_GT(gradients.tensors().size(), 30U);
  for (const auto& [name, view] : gradients.tensors()) {
    EXPECT_LT(relative_norm(trainee.engine->gradient_value(name), tensor(gradients, name)), 1e-5)
        << name;
  }
}

TEST_F(Llama3, RopeScalingVariants) {
  const Json info = parse_json(
      read_file(reference("llama3/info.json"), ErrorKind::kData), "info.json", ErrorKind::kData);
  const formats::SafetensorsFile expected(reference("llama3/variants.safetensors"));
  const models::TokenBatch batch = inputs();
  const auto weights = std::make_shared<const formats::ModelWeights>(reference("llama3"));
  const Json config = parse_json(read_file(reference("llama3/config.json"), ErrorKind::kModel),
                                 "config.json",
                                 ErrorKind::kModel);
  int variants = 0;
  for (const auto& [name, variant] : info["variants"].items()) {
    Json changed = config;
    changed.update(variant["config_change"]);
    const std::filesystem::path path =
        std::filesystem::path(testing::TempDir()) / "zeroth_variant_config.json";
    write_file_atomically(path, changed.dump());
    models::Model model = models::load_model(shapes::read_model_config(path), weights, {});
    engine::Engine engine(model.units, optim::make_adamw({}), {});
    EXPECT_NEAR(
        engine.evaluate(batch).mean(), tensor(expected, name + ".loss").item<double>(), 1e-5)
        << name;
    ++variants;
  }
  EXPECT_EQ(variants, 3);
}

TEST_F(Llama3, ThreeAdamWSteps) {
  Trainee trainee = make_trainee(options());
  const formats::SafetensorsFile golden_values(reference("llama3/golden.safetensors"));
  const at::Tensor losses = tensor(golden_values, "step_losses");
  const models::TokenBatch batch = inputs();
  for (int step = 0; step < 3; ++step) {
    EXPECT_NEAR(
        train_window(*trainee.engine, {batch}).loss.mean(), losses[step].item<double>(), 2e-5);
  }
  EXPECT_NEAR(trainee.engine->evaluate(batch).mean(), losses[3].item<double>(), 2e-5);
  const formats::SafetensorsFile after(reference("llama3/after3.safetensors"));
  for (const auto& [name, view] : after.tensors()) {
    const at::Tensor difference =
        (trainee.engine->parameter_value(name) - tensor(after, name)).abs();
    // AdamW divides by the gradient's size: where that is near zero, noise may move an element
    // further.
    EXPECT_LT((difference > 1e-5).to(at::kFloat).mean().item<double>(), 1e-2) << name;
    EXPECT_LT(relative_norm(trainee.engine->parameter_value(name), tensor(after, name)), 1e-5)
        << name;
  }
}

// The Trainer counts labels before shifting, so a label at position 0 enters its count though
// nothing predicts it; the same weight is given to the engine here.
std::int64_t unshifted_count(const at::Tensor& labels_BT) {
  return (labels_BT != -100).sum().item<std::int64_t>();
}

class TrainerRuns : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(Llama3,
                         TrainerRuns,
                         testing::Values("llama3_hand",
                                         "llama3_hand_clip1",
                                         "llama3_trainer_const"),
                         [](const auto& test) { return std::string(test.param); });

TEST_P(TrainerRuns, TokenWeightedUpdatesOfTheRealTrainer) {
  const std::string run = GetParam();
  TraineeOptions options{.folder = reference("llama3")};
  options.engine = {.accumulation_steps = 2,
                    .max_grad_norm = run == "llama3_hand" ? 0.0 : 1.0,
                    .schedule = constant_rate(1e-3)};
  Trainee trainee = make_trainee(std::move(options));
  const formats::SafetensorsFile data(reference("trainer/data.safetensors"));
  const models::TokenBatch all = batch_of(tensor(data, "input_ids"), tensor(data, "labels"));
  const Json info = parse_json(
      read_file(reference("trainer/info.json"), ErrorKind::kData), "info.json", ErrorKind::kData);
  for (std::size_t update = 0; update < 5; ++update) {
    engine::StepReport report;
    for (std::int64_t micro = 0; micro < 2; ++micro) {
      const models::TokenBatch rows =
          rows_of(all, 4 * static_cast<std::int64_t>(update) + 2 * micro, 2);
      engine::Loss loss = trainee.engine->forward(rows);
      loss.weight = unshifted_count(rows.labels_BT);
      trainee.engine->backward(loss);
      report = trainee.engine->step();
    }
    ASSERT_TRUE(report.updated);
    const Json& numbers = info["runs"][run];
    if (numbers.contains("grad_norms")) {
      EXPECT_NEAR(report.grad_norm / numbers["grad_norms"][update].get<double>(), 1.0, 1e-5);
      EXPECT_NEAR(report.loss.mean() / numbers["update_losses"][update].get<double>(), 1.0, 1e-5);
    }
  }
  const formats::SafetensorsFile expected(reference("trainer/" + run + ".safetensors"));
  int compared = 0;
  for (const auto& [name, view] : expected.tensors()) {
    if (name.starts_with("param.")) {
      EXPECT_LT(
          relative_norm(trainee.engine->parameter_value(name.substr(6)), tensor(expected, name)),
          1e-5)
          << name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 30);
}

}  // namespace
}  // namespace zeroth::parity
