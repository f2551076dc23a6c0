#include "shapes/freeze.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::shapes {
namespace {

constexpr std::string_view kBlocks = "model.layers.";

bool is_of_a_block(const std::string& parameter) {
  return parameter.starts_with(kBlocks);
}

// "model.layers.0.mlp.up_proj.weight" -> "mlp"; "model.norm.weight" -> "norm".
std::string module_of(const std::string& parameter) {
  const std::vector<std::string> parts = split(parameter, '.');
  constexpr std::size_t kBehindTheNumber = 3;
  return is_of_a_block(parameter) ? parts[kBehindTheNumber] : parts[parts.size() - 2];
}

std::vector<std::string> modules_of(const ModelShape& model, bool of_blocks) {
  std::vector<std::string> modules;
  for (const UnitShape& unit : model.units) {
    for (const ParameterShape& parameter : unit.parameters) {
      const std::string module = module_of(parameter.name);
      if (is_of_a_block(parameter.name) == of_blocks &&
          std::find(modules.begin(), modules.end(), module) == modules.end()) {
        modules.push_back(module);
      }
    }
  }
  return modules;
}

void require_known(const std::vector<std::string>& names,
                   const std::vector<std::string>& known,
                   const char* key) {
  for (const std::string& name : names) {
    if (std::find(known.begin(), known.end(), name) == known.end()) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("{} {}: the model has no such module\n  Available: {}.",
                              key,
                              name,
                              join(known, ", ")));
    }
  }
}

// What the names of trained parameters hold.
std::vector<std::string> parts_to_train(const ModelShape& model, const FreezeSettings& settings) {
  const auto layers = static_cast<std::int64_t>(model.units.size()) - 2;
  const bool last = settings.layers > 0;
  const std::int64_t count = std::min(layers, last ? settings.layers : -settings.layers);
  const std::int64_t first = last ? layers - count : 0;
  std::vector<std::string> parts = settings.extra;
  for (const std::string& module : settings.modules) {
    for (std::int64_t layer = first; layer < first + count; ++layer) {
      parts.push_back(fmt::format(".{}.{}", layer, module == "all" ? "" : module));
    }
  }
  return parts;
}

}  // namespace

std::set<std::string> freeze_trained(const ModelShape& model, const FreezeSettings& settings) {
  std::vector<std::string> of_blocks = modules_of(model, /*of_blocks=*/true);
  of_blocks.emplace_back("all");
  require_known(settings.modules, of_blocks, "freeze_trainable_modules");
  require_known(settings.extra, modules_of(model, /*of_blocks=*/false), "freeze_extra_modules");
  const std::vector<std::string> parts = parts_to_train(model, settings);
  std::set<std::string> trained;
  for (const UnitShape& unit : model.units) {
    for (const ParameterShape& parameter : unit.parameters) {
      const bool trains = std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
        return parameter.name.find(part) != std::string::npos;
      });
      if (trains) {
        trained.insert(parameter.name);
      }
    }
  }
  if (trained.empty()) {
    throw Error(ErrorKind::kConfig,
                "freeze_trainable_layers 0 trains nothing\n  Give a number of blocks, or "
                "freeze_extra_modules.");
  }
  return trained;
}

}  // namespace zeroth::shapes
