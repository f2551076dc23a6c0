#pragma once

#include "plan/input.h"

// Models of known sizes, for tests.
namespace zeroth::plan {

struct TestShape {
  std::int64_t hidden = 256;
  std::int64_t inner = 768;
  std::int64_t layers = 4;
  std::int64_t heads = 8;
  std::int64_t key_heads = 4;
  std::int64_t head_dim = 32;
  std::int64_t vocabulary = 2048;
  bool tied = false;
};

[[nodiscard]] inline formats::ModelConfig model_of(const TestShape& shape) {
  formats::ModelConfig model;
  model.model_type = "llama";
  model.hidden_size = shape.hidden;
  model.intermediate_size = shape.inner;
  model.num_hidden_layers = shape.layers;
  model.num_attention_heads = shape.heads;
  model.num_key_value_heads = shape.key_heads;
  model.head_dim = shape.head_dim;
  model.vocab_size = shape.vocabulary;
  model.max_position_embeddings = 8192;
  model.tie_word_embeddings = shape.tied;
  return model;
}

// LLaMA-3-8B's.
inline constexpr TestShape kLlama3{.hidden = 4096,
                                   .inner = 14336,
                                   .layers = 32,
                                   .heads = 32,
                                   .key_heads = 8,
                                   .head_dim = 128,
                                   .vocabulary = 128256};

// A run of `shape` in bf16, all weights trained with AdamW.
[[nodiscard]] inline PlanInput input_for(const TestShape& shape) {
  PlanInput input;
  input.model = model_of(shape);
  input.compute_type = "bf16";
  input.compute_bytes = 2;
  input.row_tokens = 128;
  return input;
}

[[nodiscard]] inline PlanInput on_ranks(PlanInput input, std::int64_t ranks, int stage) {
  input.ranks = ranks;
  input.ranks_per_node = ranks < 8 ? ranks : 8;
  input.stage = stage;
  return input;
}

}  // namespace zeroth::plan
