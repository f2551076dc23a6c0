#include "formats/model_config.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/file.h"
#include "formats/json_fields.h"
#include "formats/strict_json.h"
#include <fmt/format.h>

namespace zeroth::formats {
namespace {

// Far above any model, and small enough that no product of three of them leaves an int64.
constexpr JsonFields::Range kSize{1, std::int64_t{1} << 22};
constexpr JsonFields::Range kLayers{1, 4096};
constexpr JsonFields::Range kPositions{1, std::int64_t{1} << 30};

void require_llama(const Json& raw, const std::string& source) {
  JsonFields fields(raw, source);
  const std::string family = fields.text("model_type");
  if (!family.empty() && family != "llama") {
    fields.unsupported("model_type", "this family is not built; \"llama\" is");
  }
  fields.require_sound("model_type names the family, e.g. \"llama\".", "Choose a LLaMA model.");
}

bool names_causal_llama(const Json& name) {
  std::string lower = name.is_string() ? name.get<std::string>() : "";
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return lower == "llamaforcausallm";  // first conversions of LLaMA spelt it LLaMAForCausalLM
}

void refuse_what_changes_the_result(JsonFields& fields) {
  const Json& architectures = fields.value("architectures");
  if (architectures.is_array() && !architectures.empty() &&
      std::none_of(architectures.begin(), architectures.end(), names_causal_llama)) {
    fields.unsupported("architectures", "only LlamaForCausalLM is built");
  }
  if (fields.text_or("hidden_act", "silu") != "silu") {
    fields.unsupported("hidden_act", "only \"silu\" is built");
  }
  if (fields.has("quantization_config")) {
    fields.unsupported("quantization_config", "quantised weights are not read");
  }
  if (fields.number_or("attention_dropout", 0) != 0) {
    fields.unsupported("attention_dropout", "only 0 is built");
  }
  if (fields.number_or("partial_rotary_factor", 1) != 1) {
    fields.unsupported("partial_rotary_factor", "only 1 is built");
  }
}

bool is_known_rope_key(std::string_view key) {
  constexpr std::array<std::string_view, 7> kKnown{"type",
                                                   "rope_type",
                                                   "rope_theta",
                                                   "factor",
                                                   "low_freq_factor",
                                                   "high_freq_factor",
                                                   "original_max_position_embeddings"};
  return std::find(kKnown.begin(), kKnown.end(), key) != kKnown.end();
}

void refuse_unknown_rope_keys(JsonFields& fields, const Json& block) {
  for (const auto& [key, value] : block.items()) {
    const bool harmless = value.is_null() || (key == "partial_rotary_factor" && value == 1);
    if (!is_known_rope_key(key) && !harmless) {
      fields.unsupported(key, "this rope setting is not built");
    }
  }
}

double positive(JsonFields& fields, const char* name) {
  const double number = fields.number(name);
  if (fields.value(name).is_number() && number <= 0) {
    fields.fault(name, "must be greater than 0");
  }
  return number;
}

void read_rope_type(JsonFields& fields, RopeConfig& rope) {
  const char* key = fields.has("rope_type") ? "rope_type" : "type";  // "type": before 4.43
  const std::string type = fields.text_or(key, "default");
  if (type == "linear") {
    rope.type = RopeType::kLinear;
    rope.factor = positive(fields, "factor");
  } else if (type == "llama3") {
    rope.type = RopeType::kLlama3;
    rope.factor = positive(fields, "factor");
    rope.low_freq_factor = positive(fields, "low_freq_factor");
    rope.high_freq_factor = positive(fields, "high_freq_factor");
    rope.original_max_position_embeddings = positive(fields, "original_max_position_embeddings");
    if (rope.high_freq_factor <= rope.low_freq_factor) {
      fields.fault("high_freq_factor", "must be greater than low_freq_factor");
    }
  } else if (type != "default") {
    fields.unsupported(key, "\"default\", \"linear\" and \"llama3\" are built");
  }
}

// Transformers 5 holds everything in rope_parameters; before, the base stood beside rope_scaling.
RopeConfig read_rope(JsonFields& fields, const std::string& source) {
  RopeConfig rope;
  const bool is_v5 = fields.has("rope_parameters");
  const char* name = is_v5 ? "rope_parameters" : "rope_scaling";
  if (is_v5 && fields.has("rope_scaling") &&
      fields.value("rope_scaling") != fields.value("rope_parameters")) {
    fields.fault("rope_scaling", "stands beside another rope_parameters; keep one");
  }
  if (fields.has("rope_theta")) {
    rope.theta = positive(fields, "rope_theta");
  }
  const Json& block = fields.value(name);
  if (block.is_null()) {
    return rope;
  }
  if (!block.is_object()) {
    fields.fault(name, "must be an object");
    return rope;
  }
  JsonFields inner(block, source, fmt::format("{}.", name));
  refuse_unknown_rope_keys(inner, block);
  read_rope_type(inner, rope);
  if (inner.has("rope_theta")) {
    const double theta = positive(inner, "rope_theta");
    if (fields.has("rope_theta") && theta != rope.theta) {
      fields.fault("rope_theta", fmt::format("{}.rope_theta says {}; keep one", name, theta));
    }
    rope.theta = theta;
  }
  fields.take_faults_of(inner);
  return rope;
}

std::optional<DType> read_stored_dtype(JsonFields& fields) {
  const char* key = fields.has("dtype") ? "dtype" : "torch_dtype";
  const std::string name = fields.text_or(key, "");
  if (name.empty() || name == "auto") {
    return std::nullopt;
  }
  const auto dtype = dtype_from_torch_name(name);
  if (!dtype) {
    fields.fault(key, "unknown type; \"float32\", \"bfloat16\" and \"float16\" are usual");
  }
  return dtype;
}

std::optional<std::int64_t> read_one_id(JsonFields& fields, const char* name) {
  const std::vector<std::int64_t> ids = fields.ids(name);
  if (ids.size() > 1) {
    fields.fault(name, "must be one token id");
  }
  return ids.empty() ? std::nullopt : std::optional(ids.front());
}

// Only for sizes that are right each by itself: otherwise these faults would be consequences.
void check_sizes_fit(JsonFields& fields, const ModelConfig& config) {
  if (!fields.has("head_dim") && config.hidden_size % config.num_attention_heads != 0) {
    fields.fault(
        "hidden_size",
        fmt::format("does not divide by num_attention_heads = {} and head_dim is not given",
                    config.num_attention_heads));
  } else if (config.head_dim % 2 != 0) {
    fields.fault("head_dim",
                 fmt::format("{} is odd; rotary embedding needs pairs", config.head_dim));
  }
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    fields.fault(
        "num_attention_heads",
        fmt::format("does not divide by num_key_value_heads = {}", config.num_key_value_heads));
  }
  if (config.num_attention_heads * config.head_dim > kSize.to) {
    fields.fault("num_attention_heads",
                 fmt::format("times head_dim = {} exceeds {}", config.head_dim, kSize.to));
  }
}

void read_sizes(JsonFields& fields, ModelConfig& config) {
  config.hidden_size = fields.integer("hidden_size", kSize);
  config.intermediate_size = fields.integer("intermediate_size", kSize);
  config.num_hidden_layers = fields.integer("num_hidden_layers", kLayers);
  config.num_attention_heads = fields.integer("num_attention_heads", kSize);
  config.num_key_value_heads =
      fields.integer_or("num_key_value_heads", kSize, config.num_attention_heads);
  config.vocab_size = fields.integer("vocab_size", kSize);
  // Transformers' default for a LLaMA whose file does not say.
  config.max_position_embeddings = fields.integer_or("max_position_embeddings", kPositions, 2048);
  config.head_dim =
      fields.integer_or("head_dim", kSize, config.hidden_size / config.num_attention_heads);
  if (fields.faultless()) {
    check_sizes_fit(fields, config);
  }
}

void read_details(JsonFields& fields, ModelConfig& config) {
  config.rms_norm_eps = fields.number_or("rms_norm_eps", config.rms_norm_eps);
  if (config.rms_norm_eps < 0) {
    fields.fault("rms_norm_eps", "must not be negative");
  }
  config.initializer_range = fields.number_or("initializer_range", config.initializer_range);
  if (config.initializer_range < 0) {
    fields.fault("initializer_range", "must not be negative");
  }
  config.tie_word_embeddings = fields.flag_or("tie_word_embeddings", false);
  config.attention_bias = fields.flag_or("attention_bias", false);
  config.mlp_bias = fields.flag_or("mlp_bias", false);
  config.stored_dtype = read_stored_dtype(fields);
  config.bos_token_id = read_one_id(fields, "bos_token_id");
  config.eos_token_ids = fields.ids("eos_token_id");
}

}  // namespace

ModelConfig read_model_config(const std::filesystem::path& path) {
  const std::string source = path.string();
  ModelConfig config;
  config.raw = parse_object(read_file(path, ErrorKind::kModel), source, ErrorKind::kModel);
  require_llama(config.raw, source);
  config.model_type = "llama";
  JsonFields fields(config.raw, source);
  read_sizes(fields, config);
  read_details(fields, config);
  config.rope = read_rope(fields, source);
  refuse_what_changes_the_result(fields);
  fields.require_sound("Correct the file, or fetch the model again.",
                       "Choose a model without these settings.");
  return config;
}

GenerationDefaults read_generation_defaults(const std::filesystem::path& model_folder) {
  const std::filesystem::path path = model_folder / "generation_config.json";
  if (!std::filesystem::exists(path)) {
    return {};
  }
  const Json raw =
      parse_object(read_file(path, ErrorKind::kModel), path.string(), ErrorKind::kModel);
  JsonFields fields(raw, path.string());
  GenerationDefaults defaults;
  defaults.eos_token_ids = fields.ids("eos_token_id");
  // Early LLaMA conversions write -1 where there is no padding token.
  if (fields.value("pad_token_id") != -1) {
    defaults.pad_token_id = read_one_id(fields, "pad_token_id");
  }
  fields.require_sound("Correct the file, or remove it.", "");
  return defaults;
}

}  // namespace zeroth::formats
