#include "shapes/families.h"

#include "formats/strict_json.h"
#include "formats/test_files.h"
#include <gtest/gtest.h>

// What each family's reader makes of its config.json.
namespace zeroth::shapes {
namespace {

using formats::ModelConfig;
using zeroth::testing::expect_error;
using zeroth::testing::TemporaryFolder;

// The smallest file of a family: every size that has no default.
ModelConfig smallest(const std::string& family, const std::string& more = "{}") {
  Json config = formats::parse_object(
      R"({"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 6,
          "num_attention_heads": 32, "vocab_size": 512})",
      "test",
      ErrorKind::kModel);
  config["model_type"] = family;
  config.update(formats::parse_object(more, "more", ErrorKind::kModel));
  const TemporaryFolder folder;
  return read_model_config(folder.write("config.json", config.dump()));
}

std::vector<std::int64_t> windows_of(const ModelConfig& config) {
  std::vector<std::int64_t> windows;
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    windows.push_back(config.layer_kinds[config.kind_index(layer)].window);
  }
  return windows;
}

using Windows = std::vector<std::int64_t>;

TEST(Families, AFileThatIsSilentMeansItsClassesDefaults) {
  const ModelConfig mistral = smallest("mistral");
  EXPECT_EQ(mistral.num_key_value_heads, 8);
  EXPECT_EQ(mistral.max_position_embeddings, 131072);
  EXPECT_EQ(windows_of(mistral), Windows(6, 4096));
  const ModelConfig qwen2 = smallest("qwen2");
  EXPECT_TRUE(qwen2.qkv_bias);
  EXPECT_FALSE(qwen2.output_bias);
  EXPECT_EQ(qwen2.head_dim, 2);
  EXPECT_EQ(windows_of(qwen2), Windows(6, 0));
  const ModelConfig qwen3 = smallest("qwen3");
  EXPECT_TRUE(qwen3.qk_norm);
  EXPECT_FALSE(qwen3.qkv_bias);
  EXPECT_EQ(qwen3.head_dim, 128);
  EXPECT_FALSE(qwen3.tie_word_embeddings);
}

TEST(Families, GemmasDefaults) {
  const ModelConfig gemma = smallest("gemma");
  EXPECT_EQ(gemma.head_dim, 256);
  EXPECT_EQ(gemma.num_key_value_heads, 16);
  EXPECT_TRUE(gemma.tie_word_embeddings);
  EXPECT_TRUE(gemma.norm_plus_one);
  EXPECT_TRUE(gemma.scale_embedding);
  EXPECT_EQ(gemma.activation, formats::Activation::kGeluTanh);
  const ModelConfig gemma2 = smallest("gemma2");
  EXPECT_TRUE(gemma2.post_norms);
  EXPECT_EQ(gemma2.attention_softcap, 50);
  EXPECT_EQ(gemma2.final_softcap, 30);
  EXPECT_EQ(gemma2.attention_scale(), 1.0 / 16);
  EXPECT_EQ(windows_of(gemma2), (Windows{4096, 0, 4096, 0, 4096, 0}));
  const ModelConfig gemma3 = smallest("gemma3_text");
  EXPECT_EQ(gemma3.attention_softcap, 0);
  EXPECT_EQ(gemma3.final_softcap, 0);
  EXPECT_TRUE(gemma3.qk_norm);
  EXPECT_EQ(windows_of(gemma3), (Windows{4096, 4096, 4096, 4096, 4096, 0}));
  EXPECT_EQ(gemma3.layer_kinds[gemma3.kind_index(0)].rope.theta, 1e4);
  EXPECT_EQ(gemma3.layer_kinds[gemma3.kind_index(5)].rope.theta, 1e6);
}

TEST(Families, NullIsNoneWhereAbsentIsTheDefault) {
  EXPECT_EQ(windows_of(smallest("mistral", R"({"sliding_window": null})")), Windows(6, 0));
  const ModelConfig gemma2 =
      smallest("gemma2", R"({"attn_logit_softcapping": null, "final_logit_softcapping": null})");
  EXPECT_EQ(gemma2.attention_softcap, 0);
  EXPECT_EQ(gemma2.final_softcap, 0);
  EXPECT_EQ(smallest("qwen3", R"({"head_dim": null})").head_dim, 2);
}

TEST(Families, QwensWindowIsInForceWhenItIsSwitchedOn) {
  const std::string window = R"("sliding_window": 16, "max_window_layers": 4)";
  EXPECT_EQ(windows_of(smallest("qwen2", "{" + window + "}")), Windows(6, 0));
  EXPECT_EQ(windows_of(smallest("qwen2", R"({"use_sliding_window": true, )" + window + "}")),
            (Windows{0, 0, 0, 0, 16, 16}));
}

TEST(Families, AListOfLayerTypesBeatsTheRule) {
  const std::string types =
      R"({"sliding_window": 8, "layer_types": ["full_attention", "sliding_attention",
          "full_attention", "full_attention", "full_attention", "full_attention"]})";
  EXPECT_EQ(windows_of(smallest("gemma2", types)), (Windows{0, 8, 0, 0, 0, 0}));
  expect_error([&] { (void)smallest("qwen3", types); },
               ErrorKind::kModel,
               {"layer_types", "no window is in force"});
  expect_error([] { (void)smallest("gemma2", R"({"layer_types": ["full_attention"]})"); },
               ErrorKind::kModel,
               {"layer_types", "num_hidden_layers = 6"});
  expect_error(
      [] {
        (void)smallest("gemma2",
                       R"({"num_hidden_layers": 1, "layer_types": ["chunked_attention"]})");
      },
      ErrorKind::kNotSupported,
      {"layer_types", "chunked_attention"});
}

TEST(Families, Gemma2sWindowMayBearASecondNameOfTheSameValue) {
  EXPECT_EQ(windows_of(smallest("gemma2", R"({"sliding_window": 8, "sliding_window_size": 8})"))[0],
            8);
  expect_error(
      [] { (void)smallest("gemma2", R"({"sliding_window": 8, "sliding_window_size": 9})"); },
      ErrorKind::kModel,
      {"sliding_window_size = 9", "keep one"});
}

TEST(Families, Gemma3sPatternHasTwoNames) {
  const Windows expected{4096, 4096, 0, 4096, 4096, 0};
  EXPECT_EQ(windows_of(smallest("gemma3_text", R"({"sliding_window_pattern": 3})")), expected);
  EXPECT_EQ(windows_of(smallest("gemma3_text", R"({"_sliding_window_pattern": 3})")), expected);
}

TEST(Families, Gemma3sRopesByTypeOfLayer) {
  const ModelConfig config = smallest("gemma3_text",
                                      R"({"rope_parameters": {
      "full_attention": {"rope_type": "linear", "factor": 8, "rope_theta": 2e6},
      "sliding_attention": {"rope_type": "default", "rope_theta": 5e3}}})");
  EXPECT_EQ(config.layer_kinds[0].rope.theta, 2e6);
  EXPECT_EQ(config.layer_kinds[0].rope.factor, 8);
  EXPECT_EQ(config.layer_kinds[1].rope.theta, 5e3);
  expect_error(
      [] {
        (void)smallest("gemma3_text",
                       R"({"rope_theta": 1e6, "rope_parameters": {
      "full_attention": {"rope_theta": 2e6}, "sliding_attention": {}}})");
      },
      ErrorKind::kModel,
      {"rope_theta = 1000000.0", "keep one"});
}

TEST(Families, OfGemmasActivationsTheNewNameCounts) {
  const auto activation = [](const std::string& more) {
    return smallest("gemma", more).activation;
  };
  EXPECT_EQ(activation(R"({"hidden_act": "gelu", "hidden_activation": null})"),
            formats::Activation::kGeluTanh);
  EXPECT_EQ(activation(R"({"hidden_act": "gelu", "hidden_activation": "gelu"})"),
            formats::Activation::kGelu);
  expect_error([] { (void)smallest("gemma", R"({"hidden_act": "silu"})"); },
               ErrorKind::kModel,
               {"hidden_act = \"silu\"", "hidden_activation"});
}

TEST(Families, WhatAFamilyHasButIsNotBuiltIsRefusedByName) {
  const auto refused = [](const std::string& family, const std::string& more, const char* part) {
    expect_error([&] { (void)smallest(family, more); }, ErrorKind::kNotSupported, {part});
  };
  refused("gemma3_text", R"({"use_bidirectional_attention": true})", "use_bidirectional_attention");
  refused("gemma3", "{}", "model_type = \"gemma3\"");
  refused("qwen2", R"({"architectures": ["Qwen2ForSequenceClassification"]})", "Qwen2ForCausalLM");
  refused("qwen2_moe", "{}", "model_type = \"qwen2_moe\"");
  refused("llama", R"({"sliding_window": 4096})", "sliding_window = 4096");
}

TEST(Families, EachHasItsUnits) {
  for (const Family& family : families()) {
    const ModelShape shape = model_shape(smallest(std::string(family.model_type)));
    EXPECT_EQ(shape.units.size(), 8U) << family.model_type;
    EXPECT_EQ(shape.units[1].linears.size(), 7U) << family.model_type;
  }
  const UnitShape block = model_shape(smallest("gemma3_text")).units[1];
  std::vector<std::string> norms;
  for (const ParameterShape& parameter : block.parameters) {
    if (!parameter.decays) {
      norms.push_back(parameter.name.substr(std::string("model.layers.0.").size()));
      EXPECT_EQ(parameter.first, FirstValues::kZero);
    }
  }
  EXPECT_EQ(norms,
            (std::vector<std::string>{"input_layernorm.weight",
                                      "self_attn.q_norm.weight",
                                      "self_attn.k_norm.weight",
                                      "post_attention_layernorm.weight",
                                      "pre_feedforward_layernorm.weight",
                                      "post_feedforward_layernorm.weight"}));
}

}  // namespace
}  // namespace zeroth::shapes
