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
  constexpr std::array<std::string_view, 24> kKnown{"peft_type",
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
                                                    "qalora_group_size",
                                                    "use_rslora",
                                                    "use_dora",
                                                    "rank_pattern",
                                                    "alpha_pattern",
                                                    "modules_to_save",
                                                    "layers_to_transform",
                                                    "layers_pattern",
                                                    "exclude_modules",
                                                    "save_embedding_layers"};
  return holds(kKnown, key);
}

// LoraConfig's other fields, for a better message than "unknown key".
bool is_unbuilt_feature(std::string_view key) {
  constexpr std::array<std::string_view, 18> kFeatures{"lora_bias",
                                                       "fan_in_fan_out",
                                                       "megatron_config",
                                                       "trainable_token_indices",
                                                       "layer_replication",
                                                       "use_qalora",
                                                       "loftq_config",
                                                       "eva_config",
                                                       "corda_config",
                                                       "lora_ga_config",
                                                       "velora_config",
                                                       "alora_invocation_tokens",
                                                       "monteclora_config",
                                                       "target_parameters",
                                                       "use_bdlora",
                                                       "arrow_config",
                                                       "kasa_config",
                                                       "ensure_weight_tying"};
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
}

void read_start(JsonFields& fields, AdapterConfig& config) {
  // Most other initialisations (pissa, olora, corda, loftq, ...) change the base's weights too.
  const Json& start = fields.value("init_lora_weights");
  if (start.is_boolean()) {
    config.start = start.get<bool>() ? "true" : "false";
  } else if (start == kGaussianStart || start == "orthogonal") {
    config.start = start.get<std::string>();
  } else if (!start.is_null()) {
    fields.unsupported(
        "init_lora_weights",
        "may change the base's weights; convert the adapter to plain LoRA with PEFT");
  }
}

void read_bias(JsonFields& fields, AdapterConfig& config) {
  const std::string bias = fields.text_or("bias", "none");
  if (bias == "all") {
    config.bias = AdapterBias::kAll;
  } else if (bias == "lora_only") {
    config.bias = AdapterBias::kAdapted;
  } else if (bias != "none") {
    fields.fault("bias", "must be none, all or lora_only");
  }
}

bool is_all_linear(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text == kAllLinear;
}

bool is_name(const Json& item) {
  return item.is_string() && item != "";
}

bool are_names(const Json& value) {
  return value.is_array() && std::all_of(value.begin(), value.end(), is_name);
}

void read_target_modules(JsonFields& fields, AdapterConfig& config) {
  const char* name = "target_modules";
  const Json& value = fields.value(name);
  config.target_modules.clear();
  if (value.is_string() && is_all_linear(value.get<std::string>())) {
    config.target_modules = {kAllLinear};
  } else if (is_name(value)) {
    config.target_pattern = value.get<std::string>();
  } else if (are_names(value) && !value.empty()) {
    config.target_modules = value.get<std::vector<std::string>>();
  } else {
    fields.fault(name, "must be a list of module names, or a regular expression");
  }
}

// A list of names, or one name by itself; absent or empty: none.
std::vector<std::string> read_names(JsonFields& fields, const char* name) {
  const Json& value = fields.value(name);
  if (is_name(value)) {
    return {value.get<std::string>()};
  }
  if (are_names(value)) {
    return value.get<std::vector<std::string>>();
  }
  if (!value.is_null() && value != "") {
    fields.fault(name, "must be a list of names");
  }
  return {};
}

void read_layers(JsonFields& fields, AdapterConfig& config) {
  constexpr std::uint64_t kMostLayers = 1 << 20;
  const Json& value = fields.value("layers_to_transform");
  for (const Json& layer : value.is_array() ? value : Json::array({value})) {
    if (layer.is_number_unsigned() && layer.get<std::uint64_t>() < kMostLayers) {
      config.layers_to_transform.push_back(layer.get<std::int64_t>());
    } else if (!layer.is_null()) {
      fields.fault("layers_to_transform", "must be the number of a layer, or a list of them");
      return;
    }
  }
  config.layers_pattern = read_names(fields, "layers_pattern");
}

template <typename Number, typename Fits>
void read_pattern(JsonFields& fields,
                  const char* name,
                  const Fits& fits,
                  std::vector<std::pair<std::string, Number>>& pattern) {
  const Json& value = fields.value(name);
  if (!value.is_object() && !value.is_null()) {
    fields.fault(name, "must be a block of module names with a number each");
    return;
  }
  for (const auto& [module, number] : value.items()) {
    if (!fits(number)) {
      fields.fault(name, fmt::format("has no number above 0 for \"{}\"", module));
      return;
    }
    pattern.emplace_back(module, number.template get<Number>());
  }
}

bool is_rank(const Json& number) {
  return number.is_number_unsigned() && number.get<std::uint64_t>() >= 1 &&
         number.get<std::uint64_t>() <= static_cast<std::uint64_t>(kRank.to);
}

bool is_alpha(const Json& number) {
  return number.is_number() && std::isfinite(number.get<double>());
}

void read_modules(JsonFields& fields, AdapterConfig& config) {
  read_target_modules(fields, config);
  if (is_name(fields.value("exclude_modules"))) {
    config.exclude_pattern = fields.value("exclude_modules").get<std::string>();
  } else {
    config.exclude_modules = read_names(fields, "exclude_modules");
  }
  read_layers(fields, config);
  read_pattern(fields, "rank_pattern", is_rank, config.rank_pattern);
  read_pattern(fields, "alpha_pattern", is_alpha, config.alpha_pattern);
  config.modules_to_save = read_names(fields, "modules_to_save");
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

Json targets_to_write(const AdapterConfig& config) {
  if (!config.target_pattern.empty()) {
    return config.target_pattern;
  }
  if (config.target_modules.size() == 1 && config.target_modules.front() == kAllLinear) {
    return kAllLinear;  // a word of its own in PEFT: within a list it would be a module's name
  }
  return config.target_modules;
}

template <typename Item>
Json list_or_null(const std::vector<Item>& items) {
  return items.empty() ? Json() : Json(items);
}

Json start_to_write(const std::string& start) {
  return start == "true" || start == "false" ? Json(start == "true") : Json(start);
}

const char* bias_to_write(AdapterBias bias) {
  return bias == AdapterBias::kAll ? "all" : bias == AdapterBias::kAdapted ? "lora_only" : "none";
}

template <typename Pattern, typename Write>
Json pattern_to_write(const Pattern& pattern, const Write& write) {
  Json block = Json::object();
  for (const auto& [module, number] : pattern) {
    block[module] = write(number);
  }
  return block;
}

}  // namespace

std::filesystem::path adapter_weights_path(const std::filesystem::path& folder) {
  for (const char* name : {kAdapterWeightsFile, kAdapterTorchFile}) {
    if (std::filesystem::exists(folder / name)) {
      return folder / name;
    }
  }
  throw Error(ErrorKind::kModel,
              fmt::format("{} holds no adapter's weights: neither {} nor {}\n  Check that the copy "
                          "is complete.",
                          folder.string(),
                          kAdapterWeightsFile,
                          kAdapterTorchFile));
}

AdapterConfig read_adapter_config(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kAdapterConfigFile;
  const Json raw =
      parse_object(read_file(path, ErrorKind::kModel), path.string(), ErrorKind::kModel);
  JsonFields fields(raw, path.string());
  AdapterConfig config;
  check_kind(fields);
  config.base_model_name_or_path = fields.text_or("base_model_name_or_path", "");
  read_numbers(fields, config);
  read_modules(fields, config);
  config.use_rslora = fields.flag_or("use_rslora", false);
  config.use_dora = fields.flag_or("use_dora", false);
  read_bias(fields, config);
  read_start(fields, config);
  refuse_other_fields(fields, raw);
  fields.require_sound("Correct the file, or fetch the adapter again.",
                       "Zeroth reads LoRA adapters; merge this one into its base with PEFT "
                       "(merge_and_unload) and use the result as the model.");
  return config;
}

void write_adapter_config(const std::filesystem::path& folder, const AdapterConfig& config) {
  ZEROTH_CHECK(!config.target_modules.empty() || !config.target_pattern.empty(),
               "an adapter without target modules");
  ZEROTH_CHECK(std::count(config.target_modules.begin(), config.target_modules.end(), "all") == 0,
               "\"all\" is no name that PEFT knows; lora_targets spells it out");
  const Json none;
  Json json{
      {"alpha_pattern", pattern_to_write(config.alpha_pattern, number_to_write)},
      {"auto_mapping", none},
      {"base_model_name_or_path",
       config.base_model_name_or_path.empty() ? none : Json(config.base_model_name_or_path)},
      {"bias", bias_to_write(config.bias)},
  };
  if (!config.exclude_pattern.empty()) {
    json["exclude_modules"] = config.exclude_pattern;
  } else if (!config.exclude_modules.empty()) {
    json["exclude_modules"] = config.exclude_modules;
  }
  json.update({
      {"fan_in_fan_out", false},
      {"inference_mode", true},
      {"init_lora_weights", start_to_write(config.start)},
      {"layers_pattern", list_or_null(config.layers_pattern)},
      {"layers_to_transform", list_or_null(config.layers_to_transform)},
      {"lora_alpha", number_to_write(config.alpha)},
      {"lora_dropout", config.dropout},
      {"modules_to_save", list_or_null(config.modules_to_save)},
      {"peft_type", "LORA"},
      {"r", config.rank},
      {"rank_pattern",
       pattern_to_write(config.rank_pattern, [](std::int64_t rank) { return Json(rank); })},
      {"revision", none},
      {"target_modules", targets_to_write(config)},
      {"task_type", "CAUSAL_LM"},
      {"use_dora", config.use_dora},
      {"use_rslora", config.use_rslora},
  });
  write_file_atomically(folder / kAdapterConfigFile, json.dump(2) + "\n");
}

std::string adapter_tensor_name(const std::string& module, char which) {
  ZEROTH_CHECK(which == 'A' || which == 'B', "LoRA has A and B, not {}", which);
  return fmt::format("{}{}.lora_{}.weight", kAdapterPrefix, module, which);
}

std::string base_layer_name(const std::string& parameter) {
  const std::size_t dot = parameter.rfind('.');
  ZEROTH_CHECK(dot != std::string::npos, "{} is no parameter of a module", parameter);
  return parameter.substr(0, dot) + ".base_layer" + parameter.substr(dot);
}

}  // namespace zeroth::formats
