#include "shapes/model_shape.h"

#include "formats/test_files.h"
#include "shapes/families.h"
#include <gtest/gtest.h>

namespace zeroth::shapes {
namespace {

formats::ModelConfig small_config() {
  formats::ModelConfig config;
  config.model_type = "llama";
  config.hidden_size = 64;
  config.intermediate_size = 172;
  config.num_hidden_layers = 2;
  config.num_attention_heads = 8;
  config.num_key_value_heads = 4;
  config.head_dim = 16;  // not hidden / heads
  config.vocab_size = 512;
  return config;
}

std::vector<std::string> names_of(const UnitShape& unit) {
  std::vector<std::string> names;
  for (const ParameterShape& parameter : unit.parameters) {
    names.push_back(parameter.name);
  }
  return names;
}

const ParameterShape& parameter(const UnitShape& unit, const std::string& ending) {
  for (const ParameterShape& candidate : unit.parameters) {
    if (candidate.name.ends_with(ending)) {
      return candidate;
    }
  }
  throw std::out_of_range(ending);
}

TEST(ModelShape, UnitsAreEmbeddingBlocksHead) {
  const ModelShape model = model_shape(small_config());
  ASSERT_EQ(model.units.size(), 4U);
  EXPECT_EQ(model.units[0].name, "embedding");
  EXPECT_EQ(model.units[1].name, "layers.0");
  EXPECT_EQ(model.units[2].name, "layers.1");
  EXPECT_EQ(model.units[3].name, "head");
  EXPECT_EQ(names_of(model.units[0]), (std::vector<std::string>{"model.embed_tokens.weight"}));
  EXPECT_EQ(names_of(model.units[3]),
            (std::vector<std::string>{"model.norm.weight", "lm_head.weight"}));
}

TEST(ModelShape, ABlocksParametersStandInTheFixedOrder) {
  const UnitShape block = model_shape(small_config()).units[2];
  EXPECT_EQ(names_of(block),
            (std::vector<std::string>{"model.layers.1.input_layernorm.weight",
                                      "model.layers.1.self_attn.q_proj.weight",
                                      "model.layers.1.self_attn.k_proj.weight",
                                      "model.layers.1.self_attn.v_proj.weight",
                                      "model.layers.1.self_attn.o_proj.weight",
                                      "model.layers.1.post_attention_layernorm.weight",
                                      "model.layers.1.mlp.gate_proj.weight",
                                      "model.layers.1.mlp.up_proj.weight",
                                      "model.layers.1.mlp.down_proj.weight"}));
  EXPECT_EQ(parameter(block, "q_proj.weight").shape, (std::vector<std::int64_t>{128, 64}));
  EXPECT_EQ(parameter(block, "k_proj.weight").shape, (std::vector<std::int64_t>{64, 64}));
  EXPECT_EQ(parameter(block, "o_proj.weight").shape, (std::vector<std::int64_t>{64, 128}));
  EXPECT_EQ(parameter(block, "down_proj.weight").shape, (std::vector<std::int64_t>{64, 172}));
  EXPECT_EQ(block.linears.size(), 7U);
  EXPECT_EQ(block.linears[6].in_features, 172);
}

TEST(ModelShape, BiasesFollowTheirWeightsAndDoNotDecay) {
  formats::ModelConfig config = small_config();
  config.qkv_bias = config.output_bias = true;
  config.mlp_bias = true;
  const UnitShape block = model_shape(config).units[1];
  const std::vector<std::string> names = names_of(block);
  EXPECT_EQ(names.size(), 16U);
  EXPECT_EQ(names[1], "model.layers.0.self_attn.q_proj.weight");
  EXPECT_EQ(names[2], "model.layers.0.self_attn.q_proj.bias");
  EXPECT_EQ(parameter(block, "q_proj.bias").shape, (std::vector<std::int64_t>{128}));
  for (const ParameterShape& p : block.parameters) {
    EXPECT_EQ(p.decays, p.shape.size() == 2) << p.name;
  }
}

TEST(ModelShape, ATiedHeadBorrowsTheEmbedding) {
  formats::ModelConfig config = small_config();
  config.tie_word_embeddings = true;
  const ModelShape tied = model_shape(config);
  EXPECT_EQ(names_of(tied.units.back()), (std::vector<std::string>{"model.norm.weight"}));
  EXPECT_EQ(tied.units.back().borrowed, (std::vector<std::string>{"model.embed_tokens.weight"}));
  EXPECT_EQ(model_shape(small_config()).num_parameters() - tied.num_parameters(), 512 * 64);
}

TEST(ModelShape, CountsTheParametersOfARealModel) {
  formats::ModelConfig config;  // Llama-3.1-8B
  config.model_type = "llama";
  config.hidden_size = 4096;
  config.intermediate_size = 14336;
  config.num_hidden_layers = 32;
  config.num_attention_heads = 32;
  config.num_key_value_heads = 8;
  config.head_dim = 128;
  config.vocab_size = 128256;
  EXPECT_EQ(model_shape(config).num_parameters(), 8030261248);
}

}  // namespace
}  // namespace zeroth::shapes
