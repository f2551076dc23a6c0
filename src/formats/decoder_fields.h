#pragma once

#include <functional>

#include "formats/model_config.h"

// Fields of config.json that the decoder families share, for the readers of the families
// (shapes/families/). Faults and what is not supported are collected in the JsonFields.
namespace zeroth::formats {

// What a family's config class assumes where a file is silent.
struct DecoderDefaults {
  std::optional<std::int64_t> head_dim;             // else hidden_size / num_attention_heads
  std::optional<std::int64_t> num_key_value_heads;  // else num_attention_heads
  std::int64_t max_position_embeddings = 2048;
  bool tie_word_embeddings = false;
};

// Sizes, norms, types and ids. Refused by name: quantization_config, attention_dropout.
void read_decoder(JsonFields& fields, const DecoderDefaults& defaults, ModelConfig& config);

// "silu", "gelu" or "gelu_pytorch_tanh" of the field `name`.
[[nodiscard]] Activation read_activation(JsonFields& fields, const char* name, Activation absent);

// A number above 0, or 0 where the file says null; `absent` where it says nothing.
[[nodiscard]] double positive_or_none(JsonFields& fields, const char* name, double absent);

// The window of a model: `absent` where the file says nothing, 0 where it says null.
[[nodiscard]] std::int64_t read_window(JsonFields& fields, std::int64_t absent);

// Which layers slide and what they have in common.
struct SlidingRule {
  std::int64_t window = 0;                           // 0: none can
  std::function<bool(std::int64_t layer)> slides{};  // where the file has no layer_types
  RopeConfig full_rope{};
  RopeConfig window_rope{};
};

// The kinds of layers by layer_types, which Transformers 4.53 and later write, or by the rule.
void read_layer_kinds(JsonFields& fields, const SlidingRule& rule, ModelConfig& config);

[[nodiscard]] std::optional<std::int64_t> read_one_id(JsonFields& fields, const char* name);

// Fields that nothing has read and that are not known to leave the mathematics alone.
void refuse_unknown_fields(JsonFields& fields);

}  // namespace zeroth::formats
