#include "models/decoder_units.h"

#include "kernels/choice.h"
#include "models/model.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

// Whole models with the fast and with the reference version of every operation.
namespace zeroth::models {
namespace {

formats::ModelConfig small_config() {
  formats::ModelConfig config;
  config.model_type = "llama";
  config.hidden_size = 36;
  config.intermediate_size = 52;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 4;
  config.num_key_value_heads = 2;
  config.head_dim = 10;
  config.vocab_size = 101;
  config.max_position_embeddings = 64;
  config.initializer_range = 0.2;
  return config;
}

TokenBatch small_batch() {
  TokenBatch batch;
  batch.ids_BT = at::randint(0, 101, {3, 13}, at::kLong);
  batch.labels_BT = batch.ids_BT.clone();
  batch.labels_BT.narrow(1, 0, 4).fill_(-100);
  batch.labels_BT[2].narrow(0, 9, 4).fill_(-100);
  batch.rows = {0, 1, 2};
  return batch;
}

// The loss, then the gradients of all parameters.
std::vector<at::Tensor> loss_and_gradients(Model& model,
                                           const TokenBatch& batch,
                                           kernels::Choice choice) {
  const kernels::ChoiceScope scope(choice);
  std::vector<at::Tensor> leaves;
  for (const auto& unit : model.units) {
    for (Parameter& parameter : unit->parameters()) {
      parameter.value = parameter.value.detach().requires_grad_(true);
      leaves.push_back(parameter.value);
    }
  }
  const ForwardContext context{.batch = batch, .training = true};
  at::Tensor hidden;
  for (const auto& unit : model.units) {
    hidden = unit->forward(context, hidden);
  }
  std::vector<at::Tensor> result{hidden.detach()};
  const auto grads = torch::autograd::grad({hidden}, leaves, {at::full({}, 0.37F)});
  result.insert(result.end(), grads.begin(), grads.end());
  return result;
}

void expect_same_numbers(const formats::ModelConfig& config) {
  at::manual_seed(7);
  Model model = random_model(config, {});
  const TokenBatch batch = small_batch();
  const auto fast = loss_and_gradients(model, batch, kernels::Choice::kAuto);
  const auto reference = loss_and_gradients(model, batch, kernels::Choice::kReference);
  ASSERT_EQ(fast.size(), reference.size());
  for (std::size_t i = 0; i < fast.size(); ++i) {
    const double distance = (fast[i] - reference[i]).norm().item<double>();
    EXPECT_LE(distance, 1e-5 * reference[i].norm().item<double>()) << "tensor " << i;
  }
}

TEST(DecoderUnits, AgreeWithTheReferenceWithAHeadOfTheirOwn) {
  expect_same_numbers(small_config());
}

TEST(DecoderUnits, AgreeWithTheReferenceWithATiedHead) {
  formats::ModelConfig config = small_config();
  config.tie_word_embeddings = true;
  expect_same_numbers(config);
}

TEST(DecoderUnits, AgreeWithTheReferenceWithNormsBehindAndSoftCaps) {
  formats::ModelConfig config = small_config();
  config.model_type = "gemma2";
  config.tie_word_embeddings = true;
  config.activation = formats::Activation::kGeluTanh;
  config.norm_plus_one = true;
  config.post_norms = true;
  config.scale_embedding = true;
  config.attention_softcap = 50;
  config.final_softcap = 30;
  expect_same_numbers(config);
}

TEST(DecoderUnits, AgreeWithTheReferenceWithNormsOfHeads) {
  formats::ModelConfig config = small_config();
  config.model_type = "qwen3";
  config.qk_norm = true;
  expect_same_numbers(config);
}

}  // namespace
}  // namespace zeroth::models
