#include "plan/trained_parts.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace zeroth::plan {
namespace {

constexpr auto kOfNames = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

void take_pattern(std::vector<std::string>& names, std::string& pattern) {
  const bool is_pattern = std::any_of(names.begin(), names.end(), [](const std::string& name) {
    return name.find_first_not_of(kOfNames) != std::string::npos;
  });
  if (is_pattern) {
    pattern = join(names, ",");
    names.clear();
  }
}

// PEFT writes the keys of a pattern sorted, and reads them so.
template <typename Number>
std::vector<std::pair<std::string, Number>> sorted(const Json& block) {
  std::vector<std::pair<std::string, Number>> rows;
  for (const auto& [module, number] : block.items()) {
    rows.emplace_back(module, number.template get<Number>());
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

formats::AdapterBias bias_of(config::BiasTraining bias) {
  switch (bias) {
    case config::BiasTraining::kAll:
      return formats::AdapterBias::kAll;
    case config::BiasTraining::kLoraOnly:
      return formats::AdapterBias::kAdapted;
    case config::BiasTraining::kNone:
      break;
  }
  return formats::AdapterBias::kNone;
}

}  // namespace

shapes::LoraSettings lora_settings(const config::RunConfig& config) {
  const config::FinetuneSettings& asked = config.finetune;
  shapes::LoraSettings settings{.base_model_name_or_path = config.model_as_given(),
                                .rank = asked.lora_rank,
                                .alpha = asked.lora_alpha,
                                .dropout = asked.lora_dropout,
                                .target_modules = asked.lora_targets,
                                .exclude_modules = asked.exclude_modules,
                                .layers_pattern = asked.layers_pattern,
                                .use_rslora = asked.use_rslora,
                                .use_dora = asked.use_dora,
                                .modules_to_save = asked.modules_to_save};
  take_pattern(settings.target_modules, settings.target_pattern);
  take_pattern(settings.exclude_modules, settings.exclude_pattern);
  for (const std::string& layer : asked.layers_to_transform) {
    settings.layers_to_transform.push_back(std::stoll(layer));
  }
  settings.rank_pattern = sorted<std::int64_t>(asked.rank_pattern);
  settings.alpha_pattern = sorted<double>(asked.alpha_pattern);
  settings.bias = bias_of(asked.bias);
  settings.start = asked.init_lora_weights == config::LoraStart::kGaussian ? formats::kGaussianStart
                                                                           : settings.start;
  return settings;
}

shapes::FreezeSettings freeze_settings(const config::FinetuneSettings& asked) {
  return {.layers = asked.freeze_trainable_layers,
          .modules = asked.freeze_trainable_modules,
          .extra = asked.freeze_extra_modules};
}

}  // namespace zeroth::plan
