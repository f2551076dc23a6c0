#include "shapes/check_weights.h"

#include "formats/test_files.h"
#include "formats/weights_writer.h"
#include "shapes/families.h"
#include <gtest/gtest.h>

namespace zeroth::shapes {
namespace {

using formats::AdapterConfig;
using formats::SafetensorsFile;
using formats::TensorToWrite;
using testing::expect_error;

formats::ModelConfig small_config(bool tied) {
  formats::ModelConfig config;
  config.model_type = "llama";
  config.hidden_size = 8;
  config.intermediate_size = 12;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 2;
  config.num_key_value_heads = 1;
  config.head_dim = 4;
  config.vocab_size = 16;
  config.tie_word_embeddings = tied;
  return config;
}

class CheckWeights : public ::testing::Test {
 protected:
  std::vector<TensorToWrite> all_tensors() {
    std::vector<TensorToWrite> tensors;
    for (const UnitShape& unit : model_.units) {
      for (const ParameterShape& parameter : unit.parameters) {
        tensors.push_back(zeros_.make(parameter.name, parameter.shape));
      }
    }
    return tensors;
  }

  static TensorToWrite& find(std::vector<TensorToWrite>& tensors, const std::string& name) {
    for (TensorToWrite& tensor : tensors) {
      if (tensor.name == name) {
        return tensor;
      }
    }
    throw std::out_of_range(name);
  }

  void check(const std::vector<TensorToWrite>& tensors) const {
    formats::write_model_weights(folder_.path(), tensors);
    check_weights(model_, formats::ModelWeights(folder_.path()));
  }

  void expect_fault(const std::vector<TensorToWrite>& tensors,
                    std::vector<std::string> parts) const {
    parts.push_back(folder_.path().string());
    expect_error([&] { check(tensors); }, ErrorKind::kModel, parts);
  }

  testing::TemporaryFolder folder_;
  testing::ZeroTensors zeros_;
  ModelShape model_ = model_shape(small_config(false));
};

TEST_F(CheckWeights, AcceptsExactlyTheModel) {
  EXPECT_NO_THROW(check(all_tensors()));
}

TEST_F(CheckWeights, AllFaultsAreToldTogether) {
  std::vector<TensorToWrite> tensors = all_tensors();
  find(tensors, "model.norm.weight") = zeros_.make("model.norm.weight", {9});
  find(tensors, "lm_head.weight") = zeros_.make("lm_head.weight", {16, 8}, formats::DType::kI32);
  find(tensors, "model.layers.1.mlp.up_proj.weight").name = "model.layers.1.mlp.up_prj.weight";
  expect_fault(tensors,
               {"model.norm.weight has shape [9], expected [8]",
                "lm_head.weight is I32",
                "model.layers.1.mlp.up_proj.weight [12, 8] is missing (nearest there: "
                "model.layers.1.mlp.up_prj.weight)",
                "model.layers.1.mlp.up_prj.weight is there and would not be used"});
}

TEST_F(CheckWeights, ATransposedWeightIsToldAsOne) {
  std::vector<TensorToWrite> tensors = all_tensors();
  const std::string name = "model.layers.0.mlp.up_proj.weight";
  find(tensors, name) = zeros_.make(name, {8, 12});
  expect_fault(tensors, {name + " has shape [8, 12], expected [12, 8]: it is transposed"});
}

// A LLaMA's weights under a config of another family.
TEST_F(CheckWeights, WhatAFamilyHasBesidesIsMissedByName) {
  formats::ModelConfig config = small_config(false);
  config.qkv_bias = true;
  config.qk_norm = true;
  model_ = model_shape(config);
  std::vector<TensorToWrite> tensors = all_tensors();
  std::erase_if(tensors, [](const TensorToWrite& tensor) {
    return tensor.name.ends_with("1.self_attn.k_proj.bias") ||
           tensor.name.ends_with("0.self_attn.q_norm.weight");
  });
  expect_fault(tensors,
               {"model.layers.1.self_attn.k_proj.bias [",
                "model.layers.0.self_attn.q_norm.weight [",
                "is missing"});
}

TEST_F(CheckWeights, ManyFaultsAreCounted) {
  expect_fault({zeros_.make("model.norm.weight", {8})}, {"is missing", "and 10 more"});
}

TEST_F(CheckWeights, OldRotaryBuffersAreHarmless) {
  std::vector<TensorToWrite> tensors = all_tensors();
  tensors.push_back(zeros_.make("model.layers.0.self_attn.rotary_emb.inv_freq", {2}));
  EXPECT_NO_THROW(check(tensors));
}

TEST_F(CheckWeights, AHeadIsHarmlessOnlyInATiedModel) {
  model_ = model_shape(small_config(true));
  std::vector<TensorToWrite> tensors = all_tensors();
  tensors.push_back(zeros_.make("lm_head.weight", {16, 8}));
  EXPECT_NO_THROW(check(tensors));
  tensors.pop_back();
  EXPECT_NO_THROW(check(tensors));
  model_ = model_shape(small_config(false));
  expect_fault(tensors, {"lm_head.weight [16, 8] is missing"});
}

class CheckAdapter : public CheckWeights {
 protected:
  std::vector<TensorToWrite> adapter_tensors() {
    std::vector<TensorToWrite> tensors;
    for (const auto& linears : lora_targets(model_, config_).by_unit) {
      for (const AdaptedModule& linear : linears) {
        const auto parameters = lora_parameters(linear);
        tensors.push_back(
            zeros_.make(formats::adapter_tensor_name(linear.module, 'A'), parameters[0].shape));
        tensors.push_back(
            zeros_.make(formats::adapter_tensor_name(linear.module, 'B'), parameters[1].shape));
      }
    }
    return tensors;
  }

  void check_file(const std::vector<TensorToWrite>& tensors) const {
    const auto path = folder_.path() / "adapter_model.safetensors";
    formats::write_weights_file(path, tensors);
    check_adapter(model_, config_, SafetensorsFile(path));
  }

  void expect_adapter_fault(const std::vector<TensorToWrite>& tensors,
                            const std::vector<std::string>& parts) const {
    expect_error([&] { check_file(tensors); }, ErrorKind::kModel, parts);
  }

  AdapterConfig config_{
      .base_model_name_or_path = "base", .rank = 2, .target_modules = {"q_proj", "v_proj"}};
};

TEST_F(CheckAdapter, AcceptsExactlyTheTargets) {
  EXPECT_NO_THROW(check_file(adapter_tensors()));
}

TEST_F(CheckAdapter, KeysOfAnotherPathAreFaultsAndNotSilentlyDropped) {
  std::vector<TensorToWrite> tensors = adapter_tensors();
  for (TensorToWrite& tensor : tensors) {
    tensor.name.replace(
        0, std::string("base_model.model.model").size(), "base_model.model.model.language_model");
  }
  expect_adapter_fault(
      tensors, {"q_proj.lora_A.weight [2, 8] is missing", "and 6 more", "adapter_config.json"});
}

TEST_F(CheckAdapter, MissingWrongAndExtraTensorsAreListed) {
  std::vector<TensorToWrite> tensors = adapter_tensors();
  tensors.erase(tensors.begin() + 1);
  tensors[0] = zeros_.make(tensors[0].name, {4, 8});
  tensors.push_back(zeros_.make("base_model.model.lm_head.weight", {16, 8}));
  expect_adapter_fault(tensors,
                       {"layers.0.self_attn.q_proj.lora_B.weight [8, 2] is missing",
                        "layers.0.self_attn.q_proj.lora_A.weight has shape [4, 8], expected [2, 8]",
                        "base_model.model.lm_head.weight is there and would not be used",
                        "r = 2"});
}

TEST_F(CheckAdapter, ATargetThatTheModelLacksIsTheAdaptersFault) {
  const std::vector<TensorToWrite> tensors = adapter_tensors();
  config_.target_modules = {"query_key_value"};
  expect_adapter_fault(tensors, {"adapter_model.safetensors", "query_key_value", "q_proj (2"});
}

TEST(CheckRealFiles, ModelsAndAdaptersFitTheirShapes) {
  if (!testing::has_shared_data()) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  const auto data = testing::shared_data();
  const auto check_model = [&](const std::string& folder) {
    const ModelShape model = model_shape(shapes::read_model_config(data / folder / "config.json"));
    EXPECT_NO_THROW(check_weights(model, formats::ModelWeights(data / folder))) << folder;
    return model;
  };
  const auto check_one_adapter = [&](const ModelShape& model, const std::string& folder) {
    const SafetensorsFile file(data / folder / formats::kAdapterWeightsFile);
    EXPECT_NO_THROW(check_adapter(model, formats::read_adapter_config(data / folder), file));
  };
  const ModelShape stories = check_model("models/stories260K-hf");
  EXPECT_EQ(stories.num_parameters(), 260032);
  check_model("models/tiny-random-llama-2");
  check_model("reference/transformers/llama_linear");
  const ModelShape llama3 = check_model("reference/transformers/llama3");
  EXPECT_EQ(llama3.num_parameters(), 106784);
  check_one_adapter(stories, "reference/stories260K/lora_init");
  check_one_adapter(stories, "reference/stories260K/lora_after30");
  check_one_adapter(llama3, "reference/transformers/peft/llama3/plain");
  check_one_adapter(llama3, "reference/transformers/peft/llama3/all_linear");
}

}  // namespace
}  // namespace zeroth::shapes
