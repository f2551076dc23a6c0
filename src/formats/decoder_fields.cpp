#include "formats/decoder_fields.h"

#include <algorithm>
#include <array>
#include <string_view>

#include <fmt/format.h>

namespace zeroth::formats {
namespace {

// Far above any model, and small enough that no product of three of them leaves an int64.
constexpr JsonFields::Range kSize{1, std::int64_t{1} << 22};
constexpr JsonFields::Range kLayers{1, 4096};
constexpr JsonFields::Range kPositions{1, std::int64_t{1} << 30};

std::optional<DType> read_stored_dtype(JsonFields& fields) {
  const char* key = fields.has("dtype") ? "dtype" : "torch_dtype";
  const std::string name = fields.text_or(key, "");
  if (fields.text_or("torch_dtype", name) != name) {
    fields.fault("torch_dtype", fmt::format("stands beside dtype = \"{}\"; keep one", name));
  }
  if (name.empty() || name == "auto") {
    return std::nullopt;
  }
  const auto dtype = dtype_from_torch_name(name);
  if (!dtype) {
    fields.fault(key, "unknown type; \"float32\", \"bfloat16\" and \"float16\" are usual");
  }
  return dtype;
}

// Only for sizes that are right each by itself: otherwise these faults would be consequences.
void check_sizes_fit(JsonFields& fields, bool divides_hidden, const ModelConfig& config) {
  if (divides_hidden && config.hidden_size % config.num_attention_heads != 0) {
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

// A field that is absent has the class's value; one that is null has the general one.
std::int64_t size_or(JsonFields& fields,
                     const char* name,
                     std::optional<std::int64_t> absent,
                     std::int64_t null) {
  return fields.integer_or(name, kSize, fields.mentions(name) ? null : absent.value_or(null));
}

void read_sizes(JsonFields& fields, const DecoderDefaults& defaults, ModelConfig& config) {
  config.hidden_size = fields.integer("hidden_size", kSize);
  config.intermediate_size = fields.integer("intermediate_size", kSize);
  config.num_hidden_layers = fields.integer("num_hidden_layers", kLayers);
  config.num_attention_heads = fields.integer("num_attention_heads", kSize);
  config.num_key_value_heads = size_or(
      fields, "num_key_value_heads", defaults.num_key_value_heads, config.num_attention_heads);
  config.vocab_size = fields.integer("vocab_size", kSize);
  config.max_position_embeddings =
      fields.integer_or("max_position_embeddings", kPositions, defaults.max_position_embeddings);
  config.head_dim = size_or(
      fields, "head_dim", defaults.head_dim, config.hidden_size / config.num_attention_heads);
  const bool divides_hidden =
      !fields.has("head_dim") && (fields.mentions("head_dim") || !defaults.head_dim);
  if (fields.faultless()) {
    check_sizes_fit(fields, divides_hidden, config);
  }
}

double not_negative(JsonFields& fields, const char* name, double absent) {
  const double number = fields.number_or(name, absent);
  if (number < 0) {
    fields.fault(name, "must not be negative");
  }
  return number;
}

void refuse_what_is_not_built(JsonFields& fields) {
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

std::vector<bool> sliding_by_list(JsonFields& fields, const SlidingRule& rule, std::size_t layers) {
  const Json& types = fields.value("layer_types");
  std::vector<bool> slides(layers, false);
  if (!types.is_array() || types.size() != layers) {
    fields.fault("layer_types", fmt::format("must be a list of num_hidden_layers = {}", layers));
    return slides;
  }
  for (std::size_t layer = 0; layer < layers; ++layer) {
    slides[layer] = types[layer] == "sliding_attention";
    if (!slides[layer] && types[layer] != "full_attention") {
      fields.unsupported("layer_types", "\"full_attention\" and \"sliding_attention\" are built");
      return slides;
    }
  }
  if (rule.window == 0 && std::find(slides.begin(), slides.end(), true) != slides.end()) {
    fields.fault("layer_types", "some layers slide, but no window is in force for them");
  }
  return slides;
}

std::vector<bool> sliding_layers(JsonFields& fields, const SlidingRule& rule, std::size_t layers) {
  if (fields.has("layer_types")) {
    return sliding_by_list(fields, rule, layers);
  }
  std::vector<bool> slides(layers, false);
  for (std::size_t layer = 0; layer < layers && rule.window > 0 && rule.slides; ++layer) {
    slides[layer] = rule.slides(static_cast<std::int64_t>(layer));
  }
  return slides;
}

// What every config of Transformers may carry and no decoder's arithmetic asks for, and what tools
// leave in the files that they write.
constexpr auto kHarmless = std::to_array<std::string_view>({"add_cross_attention",
                                                            "attn_implementation",
                                                            "auto_map",
                                                            "bad_words_ids",
                                                            "begin_suppress_tokens",
                                                            "cache_implementation",
                                                            "chunk_size_feed_forward",
                                                            "cross_attention_hidden_size",
                                                            "decoder_start_token_id",
                                                            "diversity_penalty",
                                                            "do_sample",
                                                            "early_stopping",
                                                            "encoder_no_repeat_ngram_size",
                                                            "exponential_decay_length_penalty",
                                                            "finetuning_task",
                                                            "forced_bos_token_id",
                                                            "forced_eos_token_id",
                                                            "id2label",
                                                            "is_llama_config",
                                                            "keys_to_ignore_at_inference",
                                                            "label2id",
                                                            "length_penalty",
                                                            "max_length",
                                                            "max_sequence_length",
                                                            "min_length",
                                                            "model_max_length",
                                                            "no_repeat_ngram_size",
                                                            "num_beam_groups",
                                                            "num_beams",
                                                            "num_labels",
                                                            "num_return_sequences",
                                                            "output_attentions",
                                                            "output_hidden_states",
                                                            "output_scores",
                                                            "pad_token_id",
                                                            "prefix",
                                                            "pretraining_tp",
                                                            "problem_type",
                                                            "pruned_heads",
                                                            "remove_invalid_values",
                                                            "repetition_penalty",
                                                            "return_dict",
                                                            "return_dict_in_generate",
                                                            "sep_token_id",
                                                            "suppress_tokens",
                                                            "task_specific_params",
                                                            "temperature",
                                                            "tf_legacy_loss",
                                                            "tie_encoder_decoder",
                                                            "tokenizer_class",
                                                            "top_k",
                                                            "top_p",
                                                            "torchscript",
                                                            "transformers.js_config",
                                                            "transformers_version",
                                                            "typical_p",
                                                            "unk_token_id",
                                                            "unsloth_fixed",
                                                            "unsloth_version",
                                                            "use_bfloat16",
                                                            "use_cache"});

}  // namespace

void read_decoder(JsonFields& fields, const DecoderDefaults& defaults, ModelConfig& config) {
  read_sizes(fields, defaults, config);
  config.rms_norm_eps = not_negative(fields, "rms_norm_eps", config.rms_norm_eps);
  config.initializer_range = not_negative(fields, "initializer_range", config.initializer_range);
  config.tie_word_embeddings = fields.flag_or("tie_word_embeddings", defaults.tie_word_embeddings);
  config.stored_dtype = read_stored_dtype(fields);
  config.bos_token_id = read_one_id(fields, "bos_token_id");
  config.eos_token_ids = fields.ids("eos_token_id");
  refuse_what_is_not_built(fields);
}

Activation read_activation(JsonFields& fields, const char* name, Activation absent) {
  const std::string act = fields.text_or(name, "");
  if (act == "silu" || act == "swish") {
    return Activation::kSilu;
  }
  if (act == "gelu") {
    return Activation::kGelu;
  }
  if (act == "gelu_pytorch_tanh") {
    return Activation::kGeluTanh;
  }
  if (fields.value(name).is_string()) {
    fields.unsupported(name, "\"silu\", \"gelu\" and \"gelu_pytorch_tanh\" are built");
  }
  return absent;
}

double positive_or_none(JsonFields& fields, const char* name, double absent) {
  if (fields.mentions(name) && !fields.has(name)) {
    return 0;
  }
  return fields.has(name) ? fields.positive_or(name, 1) : absent;
}

std::int64_t read_window(JsonFields& fields, std::int64_t absent) {
  if (fields.mentions("sliding_window") && !fields.has("sliding_window")) {
    return 0;
  }
  return fields.integer_or("sliding_window", kPositions, absent);
}

void read_layer_kinds(JsonFields& fields, const SlidingRule& rule, ModelConfig& config) {
  const std::vector<bool> slides =
      sliding_layers(fields, rule, static_cast<std::size_t>(config.num_hidden_layers));
  const bool some_slide = std::find(slides.begin(), slides.end(), true) != slides.end();
  const bool all_slide = std::find(slides.begin(), slides.end(), false) == slides.end();
  config.layer_kinds.clear();
  config.kind_of_layer.clear();
  if (!all_slide) {
    config.layer_kinds.push_back({.rope = rule.full_rope});
  }
  if (some_slide) {
    config.layer_kinds.push_back({.window = rule.window, .rope = rule.window_rope});
  }
  for (const bool layer_slides : slides) {
    config.kind_of_layer.push_back(layer_slides && !all_slide ? 1 : 0);
  }
}

std::optional<std::int64_t> read_one_id(JsonFields& fields, const char* name) {
  const std::vector<std::int64_t> ids = fields.ids(name);
  if (ids.size() > 1) {
    fields.fault(name, "must be one token id");
  }
  return ids.empty() ? std::nullopt : std::optional(ids.front());
}

void refuse_unknown_fields(JsonFields& fields) {
  for (const std::string& name : fields.unread()) {
    const bool is_harmless = name.starts_with('_') ||
                             std::find(kHarmless.begin(), kHarmless.end(), name) != kHarmless.end();
    if (!is_harmless) {
      fields.unsupported(name, "no field of this family that Zeroth knows; it may change results");
    }
  }
}

}  // namespace zeroth::formats
