#include "formats/model_config.h"

#include "formats/test_files.h"
#include <gtest/gtest.h>

namespace zeroth::formats {
namespace {

using testing::expect_error;
using testing::TemporaryFolder;

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
  EXPECT_EQ(config.rope.theta, 10000.0);
  EXPECT_EQ(config.rope.type, RopeType::kDefault);
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
          .rope;
  EXPECT_EQ(old_spelling.type, RopeType::kLinear);
  EXPECT_EQ(old_spelling.factor, 2);
  EXPECT_EQ(old_spelling.theta, 5e5);
  const RopeConfig new_spelling =
      read_text(config_text(R"({"rope_parameters": {"rope_type":"default","rope_theta":1e6}})"))
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
  refused(R"({"model_type": "qwen3"})", "model_type = \"qwen3\"");
  refused(R"({"architectures": ["LlamaForSequenceClassification"]})", "architectures");
  refused(R"({"hidden_act": "gelu"})", "hidden_act = \"gelu\"");
  refused(R"({"quantization_config": {"quant_method": "gptq"}})", "quantization_config");
  refused(R"({"attention_dropout": 0.1})", "attention_dropout = 0.1");
  refused(R"({"partial_rotary_factor": 0.5})", "partial_rotary_factor = 0.5");
  refused(R"({"rope_scaling": {"type":"dynamic","factor":2}})", "rope_scaling.type = \"dynamic\"");
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

class RealConfig : public ::testing::TestWithParam<const char*> {};

TEST_P(RealConfig, AllThreeVersionsOfLlama3SayTheSame) {
  const auto path = testing::shared_data() / "reference/transformers/llama3" / GetParam();
  if (!testing::has_shared_data()) {
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
  EXPECT_EQ(config.rope.type, RopeType::kLlama3);
  EXPECT_EQ(config.rope.theta, 1e4);
  EXPECT_EQ(config.rope.factor, 8);
  EXPECT_EQ(config.rope.high_freq_factor, 4);
  EXPECT_EQ(config.rope.original_max_position_embeddings, 32);
}

TEST_P(RealConfig, LinearRopeIsReadAndOtherFamiliesAreRefused) {
  if (!testing::has_shared_data()) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  const auto root = testing::shared_data() / "reference/transformers";
  const ModelConfig config = read_model_config(root / "llama_linear" / GetParam());
  EXPECT_EQ(config.rope.type, RopeType::kLinear);
  EXPECT_EQ(config.rope.factor, 4);
  expect_error([&] { (void)read_model_config(root / "llama_yarn" / GetParam()); },
               ErrorKind::kNotSupported,
               {"rope_type = \"yarn\""});
  for (const char* family : {"gemma", "gemma2", "gemma3_text", "mistral", "qwen2", "qwen3"}) {
    expect_error([&] { (void)read_model_config(root / family / GetParam()); },
                 ErrorKind::kNotSupported,
                 {std::string("model_type = \"") + family + "\""});
  }
}

INSTANTIATE_TEST_SUITE_P(Versions,
                         RealConfig,
                         ::testing::Values("config.json", "config_v452.json", "config_v5.json"),
                         [](const auto& parameter) {
                           const std::string name = parameter.param;
                           return name.substr(0, name.find('.'));
                         });

TEST(ModelConfig, ReadsTheSmallRealModels) {
  if (!testing::has_shared_data()) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  const auto models = testing::shared_data() / "models";
  const ModelConfig stories = read_model_config(models / "stories260K-hf/config.json");
  EXPECT_TRUE(stories.tie_word_embeddings);
  EXPECT_EQ(stories.intermediate_size, 172);
  EXPECT_EQ(stories.eos_token_ids, (std::vector<std::int64_t>{2}));
  EXPECT_EQ(stories.raw.begin().key(), "architectures");
  const ModelConfig tiny = read_model_config(models / "tiny-random-llama-2/config.json");
  EXPECT_FALSE(tiny.tie_word_embeddings);
  EXPECT_EQ(tiny.stored_dtype, DType::kBF16);
  EXPECT_EQ(tiny.head_dim, 4);
  EXPECT_EQ(read_generation_defaults(models / "stories260K-hf").eos_token_ids,
            (std::vector<std::int64_t>{1, 2}));
}

TEST(GenerationDefaults, AreEmptyWithoutAFileAndReadIdsFromIt) {
  const TemporaryFolder folder;
  EXPECT_TRUE(read_generation_defaults(folder.path()).eos_token_ids.empty());
  (void)folder.write("generation_config.json", R"({"eos_token_id": 7, "pad_token_id": 3})");
  EXPECT_EQ(read_generation_defaults(folder.path()).eos_token_ids, (std::vector<std::int64_t>{7}));
  EXPECT_EQ(read_generation_defaults(folder.path()).pad_token_id, 3);
  (void)folder.write("generation_config.json", R"({"pad_token_id": -1})");
  EXPECT_FALSE(read_generation_defaults(folder.path()).pad_token_id.has_value());
  (void)folder.write("generation_config.json", R"({"eos_token_id": ["x"]})");
  expect_error([&] { (void)read_generation_defaults(folder.path()); },
               ErrorKind::kModel,
               {"generation_config.json", "eos_token_id"});
}

}  // namespace
}  // namespace zeroth::formats
