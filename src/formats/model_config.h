#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "formats/dtype.h"

namespace zeroth::formats {

enum class RopeType { kDefault, kLinear, kLlama3 };

struct RopeConfig {
  RopeType type = RopeType::kDefault;
  double theta = 10000.0;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  double original_max_position_embeddings = 0;
};

// What a decoder's config.json says, v4 and v5 spellings read alike (rope_scaling/rope_theta or
// rope_parameters, torch_dtype or dtype). Field names are Transformers' own.
struct ModelConfig {
  std::string model_type;  // "llama"; other families are refused by name until they are built
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;
  double rms_norm_eps = 1e-6;
  bool tie_word_embeddings = false;
  bool attention_bias = false;  // biases on q, k, v and o
  bool mlp_bias = false;
  double initializer_range = 0.02;
  RopeConfig rope;
  std::optional<DType> stored_dtype;
  std::optional<std::int64_t> bos_token_id;
  std::vector<std::int64_t> eos_token_ids;  // config.json's; a list or one number
  Json raw;                                 // the whole file, to be written back with a result
};

// Reads `path` (a config.json). Missing file, missing or mistyped fields, shapes that do not
// divide, and features not built yet (another model_type, rope types, quantization_config,
// hidden_act other than silu) are Errors of kModel / kNotSupported that name the file, the field
// and its value.
[[nodiscard]] ModelConfig read_model_config(const std::filesystem::path& path);

// generation_config.json of a model folder, as far as generation needs it; empty where absent.
struct GenerationDefaults {
  std::vector<std::int64_t> eos_token_ids;
  std::optional<std::int64_t> pad_token_id;
};

[[nodiscard]] GenerationDefaults read_generation_defaults(
    const std::filesystem::path& model_folder);

}  // namespace zeroth::formats
