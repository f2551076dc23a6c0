#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

namespace zeroth::formats {

// The biases of the base that train beside an adapter.
enum class AdapterBias { kNone, kAll, kAdapted };

// PEFT's adapter_config.json of kind LORA. What would change the result and is not built
// (lora_bias, layer_replication, trainable_token_indices, ...) is refused by name with its value.
// Names of modules match as PEFT matches them: equal, or ending in ".name".
struct AdapterConfig {
  std::string base_model_name_or_path{};
  std::int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;
  // "all" or "all-linear" alone mean every linear but the head.
  std::vector<std::string> target_modules{"all"};
  std::string target_pattern{};  // a regular expression in place of the names; empty: none
  std::vector<std::string> exclude_modules{};
  std::string exclude_pattern{};
  std::vector<std::int64_t> layers_to_transform{};  // empty: all
  std::vector<std::string> layers_pattern{};
  // Ranks and alphas of single modules: the first key that fits counts.
  std::vector<std::pair<std::string, std::int64_t>> rank_pattern{};
  std::vector<std::pair<std::string, double>> alpha_pattern{};
  bool use_rslora = false;
  bool use_dora = false;
  std::vector<std::string> modules_to_save{};  // ends of names
  AdapterBias bias = AdapterBias::kNone;
  std::string start = "true";  // init_lora_weights: "true", "false" or a word of PEFT's
};

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";
inline constexpr const char* kAdapterWeightsFile = "adapter_model.safetensors";
inline constexpr const char* kAdapterTorchFile = "adapter_model.bin";
inline constexpr const char* kAdapterPrefix = "base_model.model.";  // of PEFT's tensor names
inline constexpr const char* kAllLinear = "all-linear";
inline constexpr const char* kGaussianStart = "gaussian";

// `folder` holds adapter_config.json.
[[nodiscard]] AdapterConfig read_adapter_config(const std::filesystem::path& folder);

// The weights of an adapter's folder: adapter_model.safetensors, or adapter_model.bin where there
// is only that. kModel if there is neither.
[[nodiscard]] std::filesystem::path adapter_weights_path(const std::filesystem::path& folder);

// Writes adapter_config.json with the long-established field set that old PEFT accepts too, and
// exclude_modules where there are some.
void write_adapter_config(const std::filesystem::path& folder, const AdapterConfig& config);

// "base_model.model.<module>.lora_A.weight" (which = 'A' or 'B').
[[nodiscard]] std::string adapter_tensor_name(const std::string& module, char which);

// "model.x.base_layer.bias" of "model.x.bias": how PEFT calls the base's own parameters of an
// adapted module.
[[nodiscard]] std::string base_layer_name(const std::string& parameter);

}  // namespace zeroth::formats
