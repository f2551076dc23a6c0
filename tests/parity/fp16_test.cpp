#include <functional>

#include "generate/generate.h"
#include "models/kv_cache.h"
#include "parity/support.h"
#include "shapes/families.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

// A whole LLaMA in fp16 beside the same in fp32: fp16 storage and rounding at the borders of
// operations, real overflow.
namespace zeroth::parity {
namespace {

// The loss sum and the gradients of all trainable parameters, with `scale` taken out again.
struct Differentiated {
  double loss = 0;
  std::vector<at::Tensor> gradients;
};

models::TokenBatch inputs() {
  const formats::SafetensorsFile file(golden() / "transformers/llama3/inputs.safetensors");
  return batch_of(tensor(file, "input_ids"), tensor(file, "labels"));
}

models::Model load(at::ScalarType dtype, bool lora) {
  const std::filesystem::path folder = golden() / "transformers/llama3";
  models::ModelOptions options{.dtype = dtype};
  if (lora) {
    options.lora = shapes::LoraSettings{.rank = 8, .alpha = 16};
  }
  models::Model model = models::load_model(shapes::read_model_config(folder / "config.json"),
                                           std::make_shared<const formats::ModelWeights>(folder),
                                           options);
  if (lora) {
    models::load_adapter(
        model,
        formats::SafetensorsFile(golden() /
                                 "transformers/peft/llama3/plain/adapter_model.safetensors"));
  }
  return model;
}

// Rounds what trains to `dtype`, as an engine does, and makes leaves of it.
std::vector<at::Tensor> make_leaves(models::Model& model, at::ScalarType dtype) {
  std::vector<at::Tensor> leaves;
  for (const auto& unit : model.units) {
    for (models::Parameter& parameter : unit->parameters()) {
      parameter.materialize(parameter.trainable ? at::kFloat : dtype);
      if (parameter.trainable) {
        parameter.value = parameter.value.to(dtype).detach().requires_grad_(true);
        leaves.push_back(parameter.value);
      }
    }
  }
  return leaves;
}

// Backward from `scale` instead of 1: fp16 gradients need a scale to lie in its range.
Differentiated differentiate(at::ScalarType dtype, double scale, bool lora = false) {
  models::Model model = load(dtype, lora);
  const std::vector<at::Tensor> leaves = make_leaves(model, dtype);
  const models::TokenBatch batch = inputs();
  at::Tensor value;
  for (const auto& unit : model.units) {
    value = unit->forward({.batch = batch, .training = true}, value);
  }
  Differentiated result{.loss = value.item<double>()};
  for (const at::Tensor& gradient :
       torch::autograd::grad({value}, leaves, {at::full({}, scale, value.options())})) {
    EXPECT_EQ(gradient.scalar_type(), dtype);
    result.gradients.push_back(gradient.to(at::kFloat) / scale);
  }
  return result;
}

at::Tensor end_to_end(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> flat;
  for (const at::Tensor& one : tensors) {
    flat.push_back(one.flatten());
  }
  return at::cat(flat);
}

TEST(Fp16Model, LossAndGradientsAreNearFp32) {
  for (const bool lora : {false, true}) {
    const Differentiated wide = differentiate(at::kFloat, 1, lora);
    const Differentiated half = differentiate(at::kHalf, 64, lora);
    EXPECT_NEAR(half.loss / wide.loss, 1.0, 1e-2);
    EXPECT_LT(relative_norm(end_to_end(half.gradients), end_to_end(wide.gradients)), 2e-2);
    for (std::size_t i = 0; i < wide.gradients.size(); ++i) {
      EXPECT_LT(relative_norm(half.gradients[i], wide.gradients[i]), 5e-2) << "gradient " << i;
    }
  }
}

TEST(Fp16Model, TheSameRunGivesTheSameBits) {
  const Differentiated first = differentiate(at::kHalf, 64);
  const Differentiated second = differentiate(at::kHalf, 64);
  EXPECT_EQ(first.loss, second.loss);
  EXPECT_TRUE(at::equal(end_to_end(first.gradients), end_to_end(second.gradients)));
}

// A scale that is too large is seen: the gradients are infinite, not cut off at 65504.
TEST(Fp16Model, TooLargeAScaleOverflows) {
  const at::Tensor gradients = end_to_end(differentiate(at::kHalf, 0x1.0p20).gradients);
  EXPECT_FALSE(gradients.isfinite().all().item<bool>());
}

class Fp16Engine : public testing::Test {
 protected:
  static Trainee trainee(at::ScalarType dtype) {
    TraineeOptions options{.folder = golden() / "transformers/llama3"};
    options.model.dtype = dtype;
    options.engine.schedule = constant_rate(1e-3);
    return make_trainee(std::move(options));
  }
};

TEST_F(Fp16Engine, TrainsLikeFp32) {
  const Trainee wide = trainee(at::kFloat);
  const Trainee half = trainee(at::kHalf);
  const models::TokenBatch batch = inputs();
  for (int step = 0; step < 3; ++step) {
    const engine::StepReport expected = train_window(*wide.engine, {batch});
    const engine::StepReport report = train_window(*half.engine, {batch});
    EXPECT_TRUE(report.updated);
    EXPECT_NEAR(report.loss.mean() / expected.loss.mean(), 1.0, 1e-2);
    EXPECT_NEAR(report.grad_norm / expected.grad_norm, 1.0, 2e-2);
  }
}

TEST_F(Fp16Engine, CachedLogitsAreThoseOfAWholeForward) {
  const Trainee wide = trainee(at::kFloat);
  const Trainee half = trainee(at::kHalf);
  const at::Tensor ids = at::tensor({7, 300, 42, 9, 18, 77}, at::kLong).unsqueeze(0);
  const at::Tensor expected = logits(*wide.engine, ids);
  const at::Tensor whole = logits(*half.engine, ids);
  EXPECT_EQ(whole.scalar_type(), at::kHalf);
  EXPECT_LT(relative_norm(whole, expected), 1e-2);
  models::KvCache cache(4);
  for (std::int64_t t = 0; t < 6; ++t) {
    const models::TokenBatch one{.ids_BT = ids.narrow(1, t, 1).contiguous()};
    const at::Tensor value =
        half.engine->infer({.batch = one, .cache = &cache, .last_position = true});
    cache.advance(1);
    EXPECT_LT(relative_norm(value[0][0], whole[0][t]), 5e-3) << "position " << t;
  }
}

// Rows of unequal lengths: left padding, and rows that leave the cache early.
TEST_F(Fp16Engine, BatchedAnswersEqualThoseOfSingleRows) {
  const Trainee half = trainee(at::kHalf);
  generate::GenerateOptions options{.max_new_tokens = 12, .max_positions = 256, .num_layers = 4};
  for (std::int64_t id = 0; id < 512; id += 9) {
    options.end_ids.insert(id);
  }
  std::vector<generate::Prompt> prompts{{.row = 0, .ids = {11, 45, 200}},
                                        {.row = 1, .ids = {7, 300, 42, 9, 18, 1}},
                                        {.row = 2, .ids = {13, 45}}};
  const auto together = generate::generate(*half.engine, prompts, options);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    EXPECT_EQ(together[i].ids, generate::generate(*half.engine, {prompts[i]}, options).front().ids);
  }
}

}  // namespace
}  // namespace zeroth::parity
