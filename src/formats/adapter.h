#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace zeroth::formats {

// PEFT's adapter_config.json, as far as plain LoRA goes. Anything that would change the result and
// is not built yet (use_dora, rank_pattern, modules_to_save, bias, ...) is refused by name with its
// value.
struct AdapterConfig {
  std::string base_model_name_or_path;
  std::int64_t rank = 8;
  double alpha = 8;
  double dropout = 0;
  // Names as PEFT matches them (equal, or ending in ".name"), or the single word "all-linear".
  std::vector<std::string> target_modules;
};

inline constexpr const char* kAdapterConfigFile = "adapter_config.json";
inline constexpr const char* kAdapterWeightsFile = "adapter_model.safetensors";
inline constexpr const char* kAdapterPrefix = "base_model.model.";  // of PEFT's tensor names
inline constexpr const char* kAllLinear = "all-linear";

// `folder` holds adapter_config.json and adapter_model.safetensors.
[[nodiscard]] AdapterConfig read_adapter_config(const std::filesystem::path& folder);

// Writes adapter_config.json with the long-established field set that old PEFT accepts too.
void write_adapter_config(const std::filesystem::path& folder, const AdapterConfig& config);

// "base_model.model.<module>.lora_A.weight" (which = 'A' or 'B').
[[nodiscard]] std::string adapter_tensor_name(const std::string& module, char which);

}  // namespace zeroth::formats
