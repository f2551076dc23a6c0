#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/dtype.h"
#include "formats/rope_config.h"

namespace zeroth::formats {

enum class Activation { kSilu, kGelu, kGeluTanh };

// Layers that share what their attention sees and how their positions turn.
struct LayerKind {
  std::int64_t window = 0;  // a position sees itself and window - 1 before it; 0: all before it
  RopeConfig rope;
};

// A decoder by its features, whichever family's config.json named them and whichever release of
// Transformers wrote it. The families' readers fill it (shapes/families.h); sizes bear
// Transformers' names.
struct ModelConfig {
  std::string model_type;  // "llama", "qwen3", ...: the family
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  double initializer_range = 0.02;
  bool tie_word_embeddings = false;
  bool qkv_bias = false;     // on q, k and v
  bool output_bias = false;  // on o
  bool mlp_bias = false;

  Activation activation = Activation::kSilu;  // of the MLP's gate
  bool norm_plus_one = false;                 // norms multiply by 1 + weight, and start at 0
  bool post_norms = false;                    // norms behind attention and MLP as well
  bool qk_norm = false;                       // a norm on each head of q and k, before the rope
  bool scale_embedding = false;               // times sqrt(hidden_size), rounded as the weights are
  std::optional<double> query_pre_attn_scalar;  // attention divides by its root; else by head_dim's
  double attention_softcap = 0;                 // scores s become cap * tanh(s / cap); 0: none
  double final_softcap = 0;                     // logits likewise

  std::vector<LayerKind> layer_kinds = std::vector<LayerKind>(1);
  std::vector<std::size_t> kind_of_layer;  // empty: all are of the first kind

  std::optional<DType> stored_dtype;
  std::optional<std::int64_t> bos_token_id;
  std::vector<std::int64_t> eos_token_ids;  // config.json's; a list or one number
  Json raw;                                 // the whole file, to be written back with a result

  [[nodiscard]] std::size_t kind_index(std::int64_t layer) const {
    return kind_of_layer.empty() ? 0 : kind_of_layer[static_cast<std::size_t>(layer)];
  }

  // What scores are multiplied by.
  [[nodiscard]] double attention_scale() const;
  // Whether dynamic scaling would change the rope of rows beyond max_position_embeddings.
  [[nodiscard]] bool has_dynamic_rope() const;
};

// generation_config.json of a model folder, as far as generation needs it; empty where absent.
struct GenerationDefaults {
  std::vector<std::int64_t> eos_token_ids;
  std::optional<std::int64_t> pad_token_id;
};

[[nodiscard]] GenerationDefaults read_generation_defaults(
    const std::filesystem::path& model_folder);

}  // namespace zeroth::formats
