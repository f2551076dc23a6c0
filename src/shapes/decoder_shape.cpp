#include "shapes/decoder_shape.h"

#include <fmt/format.h>

namespace zeroth::shapes {
namespace {

using formats::ModelConfig;

constexpr const char* kEmbedding = "model.embed_tokens.weight";

// The module as one of LoRA's linears, and its parameters: weight, then bias if it has one.
void add_linear(UnitShape& unit, LinearShape linear, bool has_bias) {
  unit.parameters.push_back(
      {.name = linear.module + ".weight", .shape = {linear.out_features, linear.in_features}});
  if (has_bias) {
    unit.parameters.push_back({.name = linear.module + ".bias",
                               .shape = {linear.out_features},
                               .decays = false,
                               .first = FirstValues::kZero});
  }
  unit.linears.push_back(std::move(linear));
}

UnitShape block_shape(const ModelConfig& config, std::int64_t layer) {
  UnitShape unit{.name = fmt::format("layers.{}", layer)};
  const std::string block = fmt::format("model.layers.{}.", layer);
  const auto norm = [&](const char* name) {
    add_norm(unit, block + name, config.hidden_size, config);
  };
  norm("input_layernorm");
  add_attention(unit, block + "self_attn", config);
  norm("post_attention_layernorm");
  if (config.post_norms) {
    norm("pre_feedforward_layernorm");
  }
  add_mlp(unit, block + "mlp", config);
  if (config.post_norms) {
    norm("post_feedforward_layernorm");
  }
  return unit;
}

}  // namespace

void add_norm(UnitShape& unit,
              const std::string& module,
              std::int64_t size,
              const ModelConfig& config) {
  unit.parameters.push_back(
      {.name = module + ".weight",
       .shape = {size},
       .decays = false,
       .first = config.norm_plus_one ? FirstValues::kZero : FirstValues::kOne});
}

void add_attention(UnitShape& unit, const std::string& module, const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t query = config.num_attention_heads * config.head_dim;
  const std::int64_t key_value = config.num_key_value_heads * config.head_dim;
  const bool bias = config.qkv_bias;
  add_linear(
      unit, {.module = module + ".q_proj", .in_features = hidden, .out_features = query}, bias);
  add_linear(
      unit, {.module = module + ".k_proj", .in_features = hidden, .out_features = key_value}, bias);
  add_linear(
      unit, {.module = module + ".v_proj", .in_features = hidden, .out_features = key_value}, bias);
  add_linear(unit,
             {.module = module + ".o_proj", .in_features = query, .out_features = hidden},
             config.output_bias);
  if (config.qk_norm) {
    add_norm(unit, module + ".q_norm", config.head_dim, config);
    add_norm(unit, module + ".k_norm", config.head_dim, config);
  }
}

void add_mlp(UnitShape& unit, const std::string& module, const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t inner = config.intermediate_size;
  const bool bias = config.mlp_bias;
  add_linear(
      unit, {.module = module + ".gate_proj", .in_features = hidden, .out_features = inner}, bias);
  add_linear(
      unit, {.module = module + ".up_proj", .in_features = hidden, .out_features = inner}, bias);
  add_linear(
      unit, {.module = module + ".down_proj", .in_features = inner, .out_features = hidden}, bias);
}

UnitShape embedding_shape(const ModelConfig& config) {
  UnitShape unit{.name = "embedding"};
  unit.parameters.push_back({.name = kEmbedding, .shape = {config.vocab_size, config.hidden_size}});
  unit.ends.push_back({.module = "model.embed_tokens",
                       .in_features = config.vocab_size,
                       .out_features = config.hidden_size,
                       .is_embedding = true});
  return unit;
}

UnitShape head_shape(const ModelConfig& config) {
  UnitShape unit{.name = "head"};
  add_norm(unit, "model.norm", config.hidden_size, config);
  unit.ends.push_back(
      {.module = "lm_head", .in_features = config.hidden_size, .out_features = config.vocab_size});
  if (config.tie_word_embeddings) {
    unit.borrowed = {kEmbedding};
  } else {
    unit.parameters.push_back(
        {.name = "lm_head.weight", .shape = {config.vocab_size, config.hidden_size}});
  }
  return unit;
}

ModelShape decoder_shape(const ModelConfig& config) {
  ModelShape model;
  model.units.push_back(embedding_shape(config));
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    model.units.push_back(block_shape(config, layer));
  }
  model.units.push_back(head_shape(config));
  return model;
}

}  // namespace zeroth::shapes
