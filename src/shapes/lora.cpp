#include "shapes/lora.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"
#include "shapes/module_matcher.h"
#include "shapes/module_names.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zeroth::shapes {
namespace {

constexpr const char* kEmbedding = "embed_tokens";
constexpr const char* kHead = "lm_head";

std::string module_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

// Decides for one model and one adapter's settings.
class Targets {
 public:
  Targets(const ModelShape& model, const LoraSettings& settings)
      : model_(model),
        settings_(settings),
        matcher_(settings, spelt_out(model, settings)),
        ranks_(settings.rank_pattern, "rank_pattern"),
        alphas_(settings.alpha_pattern, "alpha_pattern") {
    result_.target_modules = spelt_out(model, settings);
  }

  LoraTargets take() {
    if (settings_.target_pattern.empty()) {
      require_matches();
    }
    for (const UnitShape& unit : model_.units) {
      result_.by_unit.push_back(adapted_in(unit));
    }
    require_some();
    count_modules();
    result_.own_head = is_tied() && (trains_whole(tied_weight()) || is_saved(kHead));
    const ModelShape trained = result_.own_head ? with_own_head(model_) : model_;
    for (std::size_t unit = 0; unit < trained.units.size(); ++unit) {
      take_base(trained.units[unit]);
      take_adapters(result_.by_unit[unit]);
    }
    note_idle();
    return std::move(result_);
  }

 private:
  template <typename Visit>
  void for_each_module(const Visit& visit) const {
    for (const UnitShape& unit : model_.units) {
      for (const LinearShape& linear : adaptable(unit)) {
        visit(linear);
      }
    }
  }

  void require_matches() const {
    if (result_.target_modules.empty()) {
      throw Error(ErrorKind::kConfig,
                  "no LoRA targets are given\n  Name the modules to adapt, or write \"all\".");
    }
    std::vector<std::string> unmatched;
    for (const std::string& target : result_.target_modules) {
      bool found = false;
      for_each_module(
          [&](const LinearShape& linear) { found = found || matches_name(linear.module, target); });
      if (!found) {
        unmatched.push_back(target);
      }
    }
    if (!unmatched.empty()) {
      fail_unmatched(model_, unmatched);
    }
  }

  void require_some() const {
    const auto is_some = [](const auto& modules) { return !modules.empty(); };
    if (std::any_of(result_.by_unit.begin(), result_.by_unit.end(), is_some)) {
      return;
    }
    if (!settings_.target_pattern.empty()) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("the LoRA target \"{}\" matches no whole name of a module that can "
                              "be adapted\n  Available: {}; a whole name is such as {}.",
                              settings_.target_pattern,
                              listed(available(model_, /*with_ends=*/true)),
                              an_example()));
    }
    throw Error(ErrorKind::kConfig,
                fmt::format("{} leave none of the LoRA targets {}\n  Take one of them out.",
                            join(narrowing_settings(), " and "),
                            join(result_.target_modules, ", ")));
  }

  // Those that are given, of all that take modules out of the targets.
  [[nodiscard]] std::vector<std::string> narrowing_settings() const {
    std::vector<std::string> given;
    if (!settings_.exclude_modules.empty() || !settings_.exclude_pattern.empty()) {
      given.push_back("exclude_modules " + join(settings_.exclude_modules, ",") +
                      settings_.exclude_pattern);
    }
    if (!settings_.layers_to_transform.empty()) {
      given.push_back(
          fmt::format("layers_to_transform {}", fmt::join(settings_.layers_to_transform, ",")));
    }
    if (!settings_.layers_pattern.empty()) {
      given.push_back("layers_pattern " + join(settings_.layers_pattern, ","));
    }
    if (!settings_.modules_to_save.empty()) {
      given.push_back("modules_to_save " + join(settings_.modules_to_save, ",") +
                      " (trained in full; embed_tokens and lm_head where tokens are added)");
    }
    return given;
  }

  // A target that was named, and that other settings leave nothing of.
  void note_idle_targets() {
    for (const auto& [target, count] : result_.counts) {
      const auto& named = settings_.target_modules;
      if (count == 0 && std::find(named.begin(), named.end(), target) != named.end()) {
        result_.idle.push_back(fmt::format("lora_target \"{}\": {} leave nothing of it",
                                           target,
                                           join(narrowing_settings(), " and ")));
      }
    }
  }

  [[nodiscard]] std::string an_example() const {
    std::string example;
    for_each_module([&](const LinearShape& linear) {
      example = example.empty() || example.ends_with(kEmbedding) ? linear.module : example;
    });
    return example;
  }

  std::vector<AdaptedModule> adapted_in(const UnitShape& unit) {
    std::vector<AdaptedModule> modules;
    for (const LinearShape& linear : adaptable(unit)) {
      if (matcher_.is_target(linear.module) && !is_saved(linear.module)) {
        modules.push_back(adapted(linear));
      }
    }
    return modules;
  }

  AdaptedModule adapted(const LinearShape& linear) {
    if (linear.is_embedding && settings_.use_dora) {
      throw Error(ErrorKind::kNotSupported,
                  fmt::format("DoRA on the embedding ({}) is not built\n  Leave it out of the LoRA "
                              "targets, or train it in full: additional_target.",
                              linear.module));
    }
    AdaptedModule module{linear};
    module.rank = ranks_.value_for(linear.module, settings_.rank);
    const double alpha = alphas_.value_for(linear.module, settings_.alpha);
    const auto rank = static_cast<double>(module.rank);
    module.scale = alpha / (settings_.use_rslora ? std::sqrt(rank) : rank);
    module.dora = settings_.use_dora;
    return module;
  }

  void count_modules() {
    for (const std::string& target : result_.target_modules) {
      result_.counts.emplace_back(target, 0);
    }
    for (const auto& modules : result_.by_unit) {
      for (const AdaptedModule& module : modules) {
        if (!settings_.target_pattern.empty()) {
          count(short_name(module.module), result_.counts);
        }
        for (std::size_t i = 0; i < result_.target_modules.size(); ++i) {
          result_.counts[i].second +=
              matches_name(module.module, result_.target_modules[i]) ? 1 : 0;
        }
      }
    }
  }

  [[nodiscard]] bool is_tied() const { return !model_.units.back().borrowed.empty(); }

  [[nodiscard]] const std::string& tied_weight() const {
    return model_.units.back().borrowed.front();
  }

  // Whether the module, or one that it lies in, is to be trained in full. PEFT asks for the end of
  // a path alone, be it in the middle of a word.
  [[nodiscard]] bool is_saved(std::string path) const {
    const auto& names = settings_.modules_to_save;
    while (!path.empty()) {
      const bool here = std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return path.ends_with(name);
      });
      if (here) {
        return true;
      }
      const std::size_t dot = path.rfind('.');
      path.resize(dot == std::string::npos ? 0 : dot);
    }
    return false;
  }

  [[nodiscard]] bool trains_whole(const std::string& parameter) const {
    return is_saved(module_of(parameter));
  }

  [[nodiscard]] bool trains_as_bias(const std::string& parameter) const {
    return parameter.ends_with(".bias") && (settings_.bias == formats::AdapterBias::kAll ||
                                            (settings_.bias == formats::AdapterBias::kAdapted &&
                                             result_.find(module_of(parameter)) != nullptr));
  }

  void take_base(const UnitShape& unit) {
    for (const ParameterShape& parameter : unit.parameters) {
      const bool whole = trains_whole(parameter.name);
      const bool bias = trains_as_bias(parameter.name);
      if (!whole && !bias) {
        continue;
      }
      result_.trained.insert(parameter.name);
      const bool adapted = result_.find(module_of(parameter.name)) != nullptr;
      save(parameter.name,
           adapted ? formats::base_layer_name(parameter.name) : parameter.name,
           parameter.shape,
           !whole && settings_.bias == formats::AdapterBias::kAdapted);
    }
  }

  void take_adapters(const std::vector<AdaptedModule>& modules) {
    for (const AdaptedModule& module : modules) {
      for (const ParameterShape& parameter : lora_parameters(module)) {
        save(parameter.name, parameter.name, parameter.shape, false);
      }
      save_end(module);
    }
  }

  // PEFT saves the weight of an adapted embedding or head as well where the settings spell its
  // short name.
  void save_end(const AdaptedModule& module) {
    const std::string name = short_name(module.module);
    const auto& targets = result_.target_modules;
    const bool spelt = settings_.target_pattern.find(name) != std::string::npos ||
                       std::find(targets.begin(), targets.end(), name) != targets.end();
    if (!spelt || (name != kEmbedding && name != kHead)) {
      return;
    }
    const std::string weight = module.module + ".weight";
    const std::vector<std::int64_t> shape =
        module.is_embedding ? std::vector{module.in_features, module.out_features}
                            : std::vector{module.out_features, module.in_features};
    const bool borrowed = name == kHead && is_tied() && !result_.own_head;
    save(borrowed ? tied_weight() : weight, formats::base_layer_name(weight), shape, true);
  }

  void save(const std::string& parameter,
            const std::string& name,
            const std::vector<std::int64_t>& shape,
            bool optional) {
    result_.saved.push_back({.parameter = parameter,
                             .key = formats::kAdapterPrefix + name,
                             .shape = shape,
                             .optional = optional});
  }

  void note_idle() {
    note_idle_targets();
    for (const std::string& key : ranks_.unused()) {
      result_.idle.push_back(fmt::format("rank_pattern \"{}\" fits no adapted module", key));
    }
    for (const std::string& key : alphas_.unused()) {
      result_.idle.push_back(fmt::format("alpha_pattern \"{}\" fits no adapted module", key));
    }
    for (const std::int64_t layer : settings_.layers_to_transform) {
      if (!any_module([&](const std::string& m) { return matcher_.layer_of(m) == layer; })) {
        result_.idle.push_back(
            fmt::format("layers_to_transform {}: there is no such layer", layer));
      }
    }
    note_idle_names();
  }

  void note_idle_names() {
    for (const std::string& name : settings_.modules_to_save) {
      const bool found = std::any_of(
          result_.trained.begin(), result_.trained.end(), [&](const std::string& parameter) {
            return lies_in(module_of(parameter), name);
          });
      if (!found) {
        result_.idle.push_back(fmt::format("modules_to_save \"{}\" is the end of no name", name));
      }
    }
    for (const std::string& name : settings_.exclude_modules) {
      if (!any_module([&](const std::string& m) { return matches_name(m, name); })) {
        result_.idle.push_back(fmt::format("exclude_modules \"{}\" fits no module", name));
      }
    }
    if (settings_.bias == formats::AdapterBias::kAll ||
        settings_.bias == formats::AdapterBias::kAdapted) {
      const bool some = std::any_of(result_.trained.begin(),
                                    result_.trained.end(),
                                    [](const std::string& p) { return p.ends_with(".bias"); });
      if (!some) {
        result_.idle.push_back("bias: the adapted modules of this model have none");
      }
    }
  }

  [[nodiscard]] static bool lies_in(std::string path, const std::string& name) {
    while (!path.ends_with(name)) {
      const std::size_t dot = path.rfind('.');
      if (dot == std::string::npos) {
        return false;
      }
      path.resize(dot);
    }
    return true;
  }

  template <typename Fits>
  [[nodiscard]] bool any_module(const Fits& fits) const {
    bool found = false;
    for_each_module([&](const LinearShape& linear) { found = found || fits(linear.module); });
    return found;
  }

  const ModelShape& model_;
  const LoraSettings& settings_;
  ModuleMatcher matcher_;
  PatternTable<std::int64_t> ranks_;
  PatternTable<double> alphas_;
  LoraTargets result_;
};

}  // namespace

const AdaptedModule* LoraTargets::find(const std::string& module) const {
  for (const auto& modules : by_unit) {
    for (const AdaptedModule& adapted : modules) {
      if (adapted.module == module) {
        return &adapted;
      }
    }
  }
  return nullptr;
}

LoraTargets lora_targets(const ModelShape& model, const LoraSettings& settings) {
  return Targets(model, settings).take();
}

std::vector<ParameterShape> lora_parameters(const AdaptedModule& module) {
  ZEROTH_CHECK(module.rank > 0, "LoRA rank {} of {}", module.rank, module.module);
  const auto name = [&](const char* which) {
    return module.module + (module.is_embedding ? fmt::format(".lora_embedding_{}", which)
                                                : fmt::format(".lora_{}.weight", which));
  };
  std::vector<ParameterShape> parameters{
      {.name = name("A"), .shape = {module.rank, module.in_features}},
      {.name = name("B"), .shape = {module.out_features, module.rank}}};
  if (module.dora) {
    parameters.push_back(
        {.name = module.module + ".lora_magnitude_vector", .shape = {module.out_features}});
  }
  return parameters;
}

ModelShape with_own_head(ModelShape model) {
  UnitShape& head = model.units.back();
  if (!head.borrowed.empty()) {
    const LinearShape& linear = head.ends.front();
    head.parameters.push_back(
        {.name = linear.module + ".weight", .shape = {linear.out_features, linear.in_features}});
    head.borrowed.clear();
  }
  return model;
}

}  // namespace zeroth::shapes
