#include "shapes/model_shape.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/check.h"
#include <fmt/format.h>

namespace zeroth::shapes {
namespace {

using formats::ModelConfig;

constexpr const char* kEmbedding = "model.embed_tokens.weight";

ParameterShape norm(const std::string& module, std::int64_t size) {
  return {.name = module + ".weight", .shape = {size}, .decays = false};
}

// The module as one of LoRA's linears, and its parameters: weight, then bias if it has one.
void add_linear(UnitShape& unit, LinearShape linear, bool has_bias) {
  unit.parameters.push_back(
      {.name = linear.module + ".weight", .shape = {linear.out_features, linear.in_features}});
  if (has_bias) {
    unit.parameters.push_back(
        {.name = linear.module + ".bias", .shape = {linear.out_features}, .decays = false});
  }
  unit.linears.push_back(std::move(linear));
}

UnitShape embedding(const ModelConfig& config) {
  UnitShape unit{.name = "embedding"};
  unit.parameters.push_back({.name = kEmbedding, .shape = {config.vocab_size, config.hidden_size}});
  return unit;
}

void add_attention(UnitShape& unit, const std::string& block, const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t query = config.num_attention_heads * config.head_dim;
  const std::int64_t key_value = config.num_key_value_heads * config.head_dim;
  const bool bias = config.attention_bias;
  const auto module = [&](const char* name) { return block + ".self_attn." + name; };
  add_linear(
      unit, {.module = module("q_proj"), .in_features = hidden, .out_features = query}, bias);
  add_linear(
      unit, {.module = module("k_proj"), .in_features = hidden, .out_features = key_value}, bias);
  add_linear(
      unit, {.module = module("v_proj"), .in_features = hidden, .out_features = key_value}, bias);
  add_linear(
      unit, {.module = module("o_proj"), .in_features = query, .out_features = hidden}, bias);
}

void add_mlp(UnitShape& unit, const std::string& block, const ModelConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t inner = config.intermediate_size;
  const bool bias = config.mlp_bias;
  const auto module = [&](const char* name) { return block + ".mlp." + name; };
  add_linear(
      unit, {.module = module("gate_proj"), .in_features = hidden, .out_features = inner}, bias);
  add_linear(
      unit, {.module = module("up_proj"), .in_features = hidden, .out_features = inner}, bias);
  add_linear(
      unit, {.module = module("down_proj"), .in_features = inner, .out_features = hidden}, bias);
}

UnitShape block_unit(const ModelConfig& config, std::int64_t layer) {
  UnitShape unit{.name = fmt::format("layers.{}", layer)};
  const std::string block = fmt::format("model.layers.{}", layer);
  unit.parameters.push_back(norm(block + ".input_layernorm", config.hidden_size));
  add_attention(unit, block, config);
  unit.parameters.push_back(norm(block + ".post_attention_layernorm", config.hidden_size));
  add_mlp(unit, block, config);
  return unit;
}

UnitShape head(const ModelConfig& config) {
  UnitShape unit{.name = "head"};
  unit.parameters.push_back(norm("model.norm", config.hidden_size));
  if (config.tie_word_embeddings) {
    unit.borrowed = {kEmbedding};
  } else {
    unit.parameters.push_back(
        {.name = "lm_head.weight", .shape = {config.vocab_size, config.hidden_size}});
  }
  return unit;
}

}  // namespace

std::int64_t ParameterShape::numel() const noexcept {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::int64_t ModelShape::num_parameters() const noexcept {
  std::int64_t sum = 0;
  for (const UnitShape& unit : units) {
    for (const ParameterShape& parameter : unit.parameters) {
      sum += parameter.numel();
    }
  }
  return sum;
}

ModelShape model_shape(const ModelConfig& config) {
  ZEROTH_CHECK(config.model_type == "llama", "no shape for the family {}", config.model_type);
  ModelShape model;
  model.units.push_back(embedding(config));
  for (std::int64_t layer = 0; layer < config.num_hidden_layers; ++layer) {
    model.units.push_back(block_unit(config, layer));
  }
  model.units.push_back(head(config));
  return model;
}

}  // namespace zeroth::shapes
