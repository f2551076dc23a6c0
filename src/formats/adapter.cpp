#include "formats/adapter.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

#include "base/check.h"
#include "base/file.h"
#include "formats/json_fields.h"
#include "formats/strict_json.h"
#include <fmt/format.h>

namespace zeroth::formats {
namespace {

constexpr JsonFields::Range kRank{1, 1 << 20};

template <std::size_t size>
bool holds(const std::array<std::string_view, size>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// Read below, or without effect on what a finished adapter computes: notes of PEFT's own, and
// parameters of features that have their own switch among the refused ones.
bool is_known(std::string_view key) {
  constexpr std::array<std::string_view, 15> kKnown{"peft_type",
                                                    "task_type",
                                                    "base_model_name_or_path",
                                                    "r",
                                                    "lora_alpha",
                                                    "lora_dropout",
                                                    "target_modules",
                                                    "bias",
                                                    "init_lora_weights",
                                                    "inference_mode",
                                                    "revision",
                                                    "auto_mapping",
                                                    "peft_version",
                                                    "megatron_core",
                                                    "qalora_group_size"};
  return holds(kKnown, key);
}

// LoraConfig's other fields, for a better message than "unknown key".
bool is_unbuilt_feature(std::string_view key) {
  constexpr std::array<std::string_view, 24> kFeatures{
      "use_dora",          "use_rslora",          "rank_pattern",    "alpha_pattern",
      "modules_to_save",   "layers_to_transform", "layers_pattern",  "lora_bias",
      "fan_in_fan_out",    "exclude_modules",     "megatron_config", "trainable_token_indices",
      "layer_replication", "use_qalora",          "loftq_config",    "eva_config",
      "corda_config",      "lora_ga_config",      "velora_config",   "alora_invocation_tokens",
      "monteclora_config", "target_parameters",   "use_bdlora",      "ensure_weight_tying"};
  return holds(kFeatures, key);
}

bool is_off(const Json& value) {
  return value.is_null() || value == false || value == "" ||
         ((value.is_object() || value.is_array()) && value.empty());
}

void refuse_other_fields(JsonFields& fields, const Json& raw) {
  for (const auto& [key, value] : raw.items()) {
    if (is_known(key) || is_off(value)) {
      continue;
    }
    fields.unsupported(key,
                       is_unbuilt_feature(key)
                           ? "changes what the adapter computes and is not built"
                           : "unknown key; it may change what the adapter computes");
  }
}

void check_kind(JsonFields& fields) {
  if (fields.text("peft_type") != "LORA" && fields.has("peft_type")) {
    fields.unsupported("peft_type", "only \"LORA\" is built");
  }
  if (fields.text_or("task_type", "CAUSAL_LM") != "CAUSAL_LM") {
    fields.unsupported("task_type", "only \"CAUSAL_LM\" is built");
  }
  if (fields.text_or("bias", "none") != "none") {
    fields.unsupported("bias", "only \"none\" is built");
  }
  // The other initialisations (pissa, olora, corda, loftq, ...) change the base's weights too.
  const Json& init = fields.value("init_lora_weights");
  if (!init.is_null() && !init.is_boolean() && init != "gaussian" && init != "orthogonal") {
    fields.unsupported(
        "init_lora_weights",
        "may change the base's weights; convert the adapter to plain LoRA with PEFT");
  }
}

bool is_all_linear(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text == kAllLinear;
}

std::vector<std::string> read_target_modules(JsonFields& fields) {
  const char* name = "target_modules";
  const Json& value = fields.value(name);
  if (value.is_string()) {
    if (!is_all_linear(value.get<std::string>())) {
      fields.unsupported(name, "a regular expression is not built; list the module names");
    }
    return {kAllLinear};
  }
  const auto is_name = [](const Json& item) { return item.is_string() && item != ""; };
  if (!value.is_array() || value.empty() || !std::all_of(value.begin(), value.end(), is_name)) {
    fields.fault(name, "must be a list of module names");
    return {};
  }
  return value.get<std::vector<std::string>>();
}

void read_numbers(JsonFields& fields, AdapterConfig& config) {
  config.rank = fields.integer_or("r", kRank, config.rank);
  config.alpha = fields.number_or("lora_alpha", config.alpha);
  config.dropout = fields.number_or("lora_dropout", config.dropout);
  if (config.dropout < 0 || config.dropout >= 1) {
    fields.fault("lora_dropout", "must be at least 0 and below 1");
  }
}

// PEFT before 0.14 types lora_alpha as int and shows it so.
Json number_to_write(double value) {
  constexpr double kExact = 9007199254740992.0;  // 2^53
  const bool is_whole = std::nearbyint(value) == value && std::abs(value) < kExact;
  return is_whole ? Json(static_cast<std::int64_t>(value)) : Json(value);
}

Json targets_to_write(const std::vector<std::string>& targets) {
  if (targets.size() == 1 && targets.front() == kAllLinear) {
    return kAllLinear;  // a word of its own in PEFT: within a list it would be a module's name
  }
  return targets;
}

}  // namespace

AdapterConfig read_adapter_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kAdapterConfigFile;
  const Json raw =
      parse_object(read_file(path, ErrorKind::kModel), path.string(), ErrorKind::kModel);
  JsonFields fields(raw, path.string());
  AdapterConfig config;
  check_kind(fields);
  config.base_model_name_or_path = fields.text_or("base_model_name_or_path", "");
  read_numbers(fields, config);
  config.target_modules = read_target_modules(fields);
  refuse_other_fields(fields, raw);
  fields.require_sound("Correct the file, or fetch the adapter again.",
                       "Zeroth reads plain LoRA adapters; merge this one into its base with PEFT "
                       "(merge_and_unload) and use the result as the model.");
  return config;
}

void write_adapter_config(const std::filesystem::path& folder, const AdapterConfig& config) {
  ZEROTH_CHECK(!config.target_modules.empty(), "an adapter without target modules");
  ZEROTH_CHECK(std::count(config.target_modules.begin(), config.target_modules.end(), "all") == 0,
               "\"all\" is no name that PEFT knows; lora_targets spells it out");
  const Json none;
  const Json json{
      {"alpha_pattern", Json::object()},
      {"auto_mapping", none},
      {"base_model_name_or_path",
       config.base_model_name_or_path.empty() ? none : Json(config.base_model_name_or_path)},
      {"bias", "none"},
      {"fan_in_fan_out", false},
      {"inference_mode", true},
      {"init_lora_weights", true},
      {"layers_pattern", none},
      {"layers_to_transform", none},
      {"lora_alpha", number_to_write(config.alpha)},
      {"lora_dropout", config.dropout},
      {"modules_to_save", none},
      {"peft_type", "LORA"},
      {"r", config.rank},
      {"rank_pattern", Json::object()},
      {"revision", none},
      {"target_modules", targets_to_write(config.target_modules)},
      {"task_type", "CAUSAL_LM"},
      {"use_dora", false},
      {"use_rslora", false},
  };
  write_file_atomically(folder / kAdapterConfigFile, json.dump(2) + "\n");
}

std::string adapter_tensor_name(const std::string& module, char which) {
  ZEROTH_CHECK(which == 'A' || which == 'B', "LoRA has A and B, not {}", which);
  return fmt::format("{}{}.lora_{}.weight", kAdapterPrefix, module, which);
}

}  // namespace zeroth::formats
