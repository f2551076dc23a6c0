#include <cmath>

#include "formats/strict_json.h"
#include "formats/test_files.h"
#include "shapes/families.h"
#include <gtest/gtest.h>

namespace zeroth::shapes {
namespace {

using formats::DType;
using formats::ModelConfig;
using formats::RopeConfig;
using formats::RopeType;
using zeroth::testing::expect_error;
using zeroth::testing::TemporaryFolder;

// A sound config.json with some fields replaced; a field given as null is left out.
std::string config_text(const std::string& changes) {
  Json config = parse_json(
      R"({"model_type":"llama","architectures":["LlamaForCausalLM"],"hidden_size":64,
          "intermediate_size":172,"num_hidden_layers":5,"num_attention_heads":8,
          "num_key_value_heads":4,"vocab_size":512,"max_position_embeddings":512})",
      "test",
      ErrorKind::kModel);
  config.merge_patch(parse_json(changes, "changes", ErrorKind::kModel));
  return config.dump();
}

ModelConfig read_text(const std::string& text) {
  const TemporaryFolder folder;
  return read_model_config(folder.write("config.json", text));
}

void expect_refused(const std::string& changes, ErrorKind kind, std::vector<std::string> parts) {
  parts.emplace_back("config.json");
  expect_error([&] { (void)read_text(config_text(changes)); }, kind, parts);
}

TEST(ModelConfig, MissingOptionalFieldsHaveTransformersDefaults) {
  const ModelConfig config = read_text(config_text(
      R"({"num_key_value_heads": null, "max_position_embeddings": null, "architectures": null})"));
  EXPECT_EQ(config.num_key_value_heads, 8);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.max_position_embeddings, 2048);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.layer_kinds[0].rope.theta, 10000.0);
  EXPECT_EQ(config.layer_kinds[0].rope.type, RopeType::kDefault);
  EXPECT_FALSE(config.tie_word_embeddings);
  EXPECT_FALSE(config.stored_dtype.has_value());
  EXPECT_TRUE(config.eos_token_ids.empty());
}

TEST(ModelConfig, ReadsTokenIdsAsNumberOrList) {
  const ModelConfig config =
      read_text(config_text(R"({"bos_token_id": 1, "eos_token_id": [128001, 128008]})"));
  EXPECT_EQ(config.bos_token_id, 1);
  EXPECT_EQ(config.eos_token_ids, (std::vector<std::int64_t>{128001, 128008}));
  expect_refused(R"({"eos_token_id": "</s>"})", ErrorKind::kModel, {"eos_token_id = \"</s>\""});
  expect_refused(R"({"bos_token_id": [1, 2]})", ErrorKind::kModel, {"bos_token_id"});
}

TEST(ModelConfig, ReadsBothSpellingsOfTypeAndRope) {
  EXPECT_EQ(read_text(config_text(R"({"dtype": "bfloat16"})")).stored_dtype, DType::kBF16);
  EXPECT_EQ(read_text(config_text(R"({"torch_dtype": "float16"})")).stored_dtype, DType::kF16);
  const RopeConfig old_spelling =
      read_text(config_text(R"({"rope_theta": 5e5, "rope_scaling": {"type":"linear","factor":2}})"))
          .layer_kinds[0]
          .rope;
  EXPECT_EQ(old_spelling.type, RopeType::kLinear);
  EXPECT_EQ(old_spelling.factor, 2);
  EXPECT_EQ(old_spelling.theta, 5e5);
  const RopeConfig new_spelling =
      read_text(config_text(R"({"rope_parameters": {"rope_type":"default","rope_theta":1e6}})"))
          .layer_kinds[0]
          .rope;
  EXPECT_EQ(new_spelling.type, RopeType::kDefault);
  EXPECT_EQ(new_spelling.theta, 1e6);
}

TEST(ModelConfig, AllFaultsAreToldTogether) {
  expect_refused(R"({"hidden_size": "64", "vocab_size": null, "num_hidden_layers": 0})",
                 ErrorKind::kModel,
                 {"hidden_size = \"64\"", "vocab_size is missing", "num_hidden_layers = 0"});
}

TEST(ModelConfig, ShapesThatDoNotDivideAreFaults) {
  expect_refused(R"({"hidden_size": 65})", ErrorKind::kModel, {"hidden_size = 65", "= 8"});
  expect_refused(R"({"num_key_value_heads": 3})", ErrorKind::kModel, {"num_key_value_heads = 3"});
  expect_refused(R"({"head_dim": 7})", ErrorKind::kModel, {"head_dim = 7", "odd"});
  expect_refused(R"({"head_dim": 4194304})", ErrorKind::kModel, {"exceeds"});
  expect_refused(R"({"vocab_size": 18446744073709551615})", ErrorKind::kModel, {"vocab_size"});
  expect_refused(R"({"vocab_size": 512.0})", ErrorKind::kModel, {"vocab_size = 512.0"});
}

TEST(ModelConfig, MistypedFieldsAreFaults) {
  expect_refused(R"({"tie_word_embeddings": "yes"})", ErrorKind::kModel, {"tie_word_embeddings"});
  expect_refused(R"({"rms_norm_eps": "1e-5"})", ErrorKind::kModel, {"rms_norm_eps"});
  expect_refused(R"({"rms_norm_eps": -1})", ErrorKind::kModel, {"rms_norm_eps"});
  expect_refused(R"({"torch_dtype": "fp32"})", ErrorKind::kModel, {"torch_dtype = \"fp32\""});
  expect_refused(R"({"rope_scaling": 8})", ErrorKind::kModel, {"rope_scaling"});
  expect_refused(R"({"rope_theta": 0})", ErrorKind::kModel, {"rope_theta"});
  expect_refused(R"({"rope_scaling": {"rope_type":"linear"}})",
                 ErrorKind::kModel,
                 {"rope_scaling.factor is missing"});
  expect_refused(R"({"rope_scaling": {"rope_type":"llama3","factor":8,"low_freq_factor":4,
                     "high_freq_factor":4,"original_max_position_embeddings":32}})",
                 ErrorKind::kModel,
                 {"rope_scaling.high_freq_factor"});
  expect_refused(R"({"rope_theta": 1, "rope_parameters": {"rope_theta": 2}})",
                 ErrorKind::kModel,
                 {"rope_theta = 1", "keep one"});
}

TEST(ModelConfig, WhatIsNotBuiltIsRefusedByName) {
  const auto refused = [](const std::string& changes, const std::string& part) {
    expect_refused(changes, ErrorKind::kNotSupported, {part});
  };
  refused(R"({"model_type": "mamba"})", "model_type = \"mamba\"");
  refused(R"({"architectures": ["LlamaForSequenceClassification"]})", "architectures");
  refused(R"({"hidden_act": "relu"})", "hidden_act = \"relu\"");
  refused(R"({"quantization_config": {"quant_method": "gptq"}})", "quantization_config");
  refused(R"({"attention_dropout": 0.1})", "attention_dropout = 0.1");
  refused(R"({"partial_rotary_factor": 0.5})", "partial_rotary_factor = 0.5");
  refused(R"({"rope_scaling": {"type":"longrope","factor":2}})",
          "rope_scaling.type = \"longrope\"");
  refused(R"({"rope_scaling": {"rope_type":"linear","factor":2,"attention_factor":1.5}})",
          "rope_scaling.attention_factor = 1.5");
}

TEST(ModelConfig, AFileThatIsNoConfigIsSaidSo) {
  expect_error([] { (void)read_model_config("/nowhere/config.json"); },
               ErrorKind::kModel,
               {"/nowhere/config.json"});
  expect_error(
      [] { (void)read_text("{\n \"model_type\": }"); }, ErrorKind::kModel, {"config.json:2:16"});
  expect_error([] { (void)read_text("[]"); }, ErrorKind::kModel, {"object is expected"});
  expect_error([] { (void)read_text("{}"); }, ErrorKind::kModel, {"model_type is missing"});
  expect_error([] { (void)read_text(R"({"model_type":"llama","model_type":"llama"})"); },
               ErrorKind::kModel,
               {"stands twice"});
  expect_error([] { (void)read_text(R"({"rope_theta": 1e999})"); },
               ErrorKind::kModel,
               {"config.json", "1e999"});
}

TEST(ModelConfig, AFieldThatNobodyKnowsIsRefusedByName) {
  expect_refused(R"({"sliding_windw": 128, "num_experts": 8})",
                 ErrorKind::kNotSupported,
                 {"sliding_windw = 128", "num_experts = 8"});
  expect_refused(
      R"({"text_config": {"hidden_size": 4}})", ErrorKind::kNotSupported, {"text_config"});
  // What is off, what a config of any model may carry, and notes.
  (void)read_text(config_text(R"({"use_mrope": false, "use_cache": true, "id2label": {"0": "a"},
                                  "_name_or_path": "x", "transformers_version": "4.40.0"})"));
}

TEST(ModelConfig, TwoSpellingsThatDisagreeAreFaults) {
  expect_refused(R"({"dtype": "float16", "torch_dtype": "bfloat16"})",
                 ErrorKind::kModel,
                 {"torch_dtype = \"bfloat16\"", "keep one"});
  expect_refused(R"({"rope_scaling": {"rope_type":"linear","type":"yarn","factor":2}})",
                 ErrorKind::kModel,
                 {"rope_scaling.type", "keep one"});
}

RopeConfig rope_of(const std::string& block) {
  return read_text(config_text(R"({"rope_scaling": )" + block + "}")).layer_kinds[0].rope;
}

TEST(Rope, YarnHasTransformersDefaults) {
  const RopeConfig rope = rope_of(R"({"rope_type": "yarn", "factor": 4})");
  EXPECT_EQ(rope.type, RopeType::kYarn);
  EXPECT_EQ(rope.original_max_position_embeddings, 512);
  EXPECT_EQ(rope.beta_fast, 32);
  EXPECT_EQ(rope.beta_slow, 1);
  EXPECT_TRUE(rope.truncate);
  EXPECT_NEAR(rope.attention_factor, 0.1 * std::log(4.0) + 1, 1e-12);
}

TEST(Rope, YarnTakesEverySettingOfItsOwn) {
  const RopeConfig rope =
      rope_of(R"({"type": "yarn", "factor": 8, "original_max_position_embeddings": 64,
                  "beta_fast": 16, "beta_slow": 2, "truncate": false, "attention_factor": 1.25})");
  EXPECT_EQ(rope.original_max_position_embeddings, 64);
  EXPECT_EQ(rope.beta_fast, 16);
  EXPECT_EQ(rope.beta_slow, 2);
  EXPECT_FALSE(rope.truncate);
  EXPECT_EQ(rope.attention_factor, 1.25);
  const RopeConfig scaled =
      rope_of(R"({"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 0.5})");
  EXPECT_NEAR(
      scaled.attention_factor, (0.1 * std::log(40.0) + 1) / (0.05 * std::log(40.0) + 1), 1e-12);
  expect_refused(
      R"({"rope_scaling": {"type": "yarn", "factor": 4, "beta_fast": 1, "beta_slow": 2}})",
      ErrorKind::kModel,
      {"rope_scaling.beta_fast"});
}

TEST(Rope, DynamicIsReadUpToWhereItWouldBegin) {
  EXPECT_EQ(rope_of(R"({"type": "dynamic", "factor": 2})").original_max_position_embeddings, 512);
  expect_refused(
      R"({"rope_scaling": {"type": "dynamic", "factor": 2, "original_max_position_embeddings": 64}})",
      ErrorKind::kNotSupported,
      {"rope_scaling.original_max_position_embeddings = 64"});
}

class RealConfig : public ::testing::TestWithParam<const char*> {};

TEST_P(RealConfig, AllThreeVersionsOfLlama3SayTheSame) {
  const auto path = zeroth::testing::shared_data() / "reference/transformers/llama3" / GetParam();
  if (!zeroth::testing::has_shared_data()) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  const ModelConfig config = read_model_config(path);
  EXPECT_EQ(config.hidden_size, 32);
  EXPECT_EQ(config.num_hidden_layers, 4);
  EXPECT_EQ(config.num_key_value_heads, 2);
  EXPECT_EQ(config.head_dim, 32);
  EXPECT_EQ(config.stored_dtype, DType::kF32);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.initializer_range, 0.2);
  EXPECT_EQ(config.layer_kinds[0].rope.type, RopeType::kLlama3);
  EXPECT_EQ(config.layer_kinds[0].rope.theta, 1e4);
  EXPECT_EQ(config.layer_kinds[0].rope.factor, 8);
  EXPECT_EQ(config.layer_kinds[0].rope.high_freq_factor, 4);
  EXPECT_EQ(config.layer_kinds[0].rope.original_max_position_embeddings, 32);
}

TEST_P(RealConfig, LinearRopeIsRead) {
  if (!zeroth::testing::has_shared_data()) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  const auto root = zeroth::testing::shared_data() / "reference/transformers";
  const ModelConfig config = read_model_config(root / "llama_linear" / GetParam());
  EXPECT_EQ(config.layer_kinds[0].rope.type, RopeType::kLinear);
  EXPECT_EQ(config.layer_kinds[0].rope.factor, 4);
}

INSTANTIATE_TEST_SUITE_P(Versions,
                         RealConfig,
                         ::testing::Values("config.json", "config_v452.json", "config_v5.json"),
                         [](const auto& parameter) {
                           const std::string name = parameter.param;
                           return name.substr(0, name.find('.'));
                         });

TEST(ModelConfig, ReadsTheSmallRealModels) {
  if (!zeroth::testing::has_shared_data()) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  const auto models = zeroth::testing::shared_data() / "models";
  const ModelConfig stories = read_model_config(models / "stories260K-hf/config.json");
  EXPECT_TRUE(stories.tie_word_embeddings);
  EXPECT_EQ(stories.intermediate_size, 172);
  EXPECT_EQ(stories.eos_token_ids, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(stories.raw.begin().key(), "architectures");
  const ModelConfig tiny = read_model_config(models / "tiny-random-llama-2/config.json");
  EXPECT_FALSE(tiny.tie_word_embeddings);
  EXPECT_EQ(tiny.stored_dtype, DType::kBF16);
  EXPECT_EQ(tiny.head_dim, 4);
}

}  // namespace
}  // namespace zeroth::shapes
