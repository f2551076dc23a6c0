#include "shapes/module_matcher.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include <fmt/format.h>

namespace zeroth::shapes {
namespace {

bool any_name(const std::vector<std::string>& names, const std::string& module) {
  return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
    return matches_name(module, name);
  });
}

void refuse_layers_of_a_pattern(const formats::AdapterConfig& settings) {
  if (!settings.target_pattern.empty() && !settings.layers_to_transform.empty()) {
    throw Error(ErrorKind::kConfig,
                fmt::format("layers_to_transform goes with names, and the LoRA target is a regular "
                            "expression: {}\n  Say the layers in the expression.",
                            settings.target_pattern));
  }
}

}  // namespace

bool matches_name(std::string_view module, std::string_view name) {
  return module == name ||
         (module.ends_with(name) && module[module.size() - name.size() - 1] == '.');
}

ModuleMatcher::ModuleMatcher(const formats::AdapterConfig& settings,
                             std::vector<std::string> targets)
    : settings_(settings), targets_(std::move(targets)) {
  refuse_layers_of_a_pattern(settings);
  if (!settings.target_pattern.empty()) {
    pattern_.emplace(settings.target_pattern, "LoRA target");
  }
  if (!settings.exclude_pattern.empty()) {
    excluded_.emplace(settings.exclude_pattern, "exclude_modules");
  }
  for (const std::string& pattern : settings.layers_pattern) {
    layers_.emplace_back(".*\\." + pattern + "\\.(\\d+)\\.", "layers_pattern");
  }
  if (settings.layers_pattern.empty()) {
    layers_.emplace_back(R"(.*\.[^.]*\.(\d+)\.)", "layers_pattern");
  }
}

bool ModuleMatcher::is_excluded(const std::string& module) const {
  return excluded_ ? excluded_->matches(module) : any_name(settings_.exclude_modules, module);
}

bool ModuleMatcher::is_named(const std::string& module) const {
  return pattern_ ? pattern_->matches(module) : any_name(targets_, module);
}

bool ModuleMatcher::is_target(const std::string& module) const {
  if (is_excluded(module) || !is_named(module)) {
    return false;
  }
  const bool whole = std::find(targets_.begin(), targets_.end(), module) != targets_.end();
  if (pattern_ || whole || settings_.layers_to_transform.empty()) {
    return true;
  }
  const auto& layers = settings_.layers_to_transform;
  const std::optional<std::int64_t> layer = layer_of(module);
  return layer && std::find(layers.begin(), layers.end(), *layer) != layers.end();
}

std::optional<std::int64_t> ModuleMatcher::layer_of(const std::string& module) const {
  for (const formats::NamePattern& pattern : layers_) {
    const std::string digits = pattern.first_group(module);
    std::int64_t layer = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), layer);
    if (!digits.empty() && error == std::errc()) {
      return layer;
    }
  }
  return std::nullopt;
}

}  // namespace zeroth::shapes
