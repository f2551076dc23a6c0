#include "cli/model_names.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "formats/hub_cache.h"
#include <fmt/format.h>

namespace zeroth::cli {
namespace {

namespace fs = std::filesystem;

std::optional<std::string> variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

fs::path cache_of(const config::ModelSettings& model) {
  return model.cache_dir.empty() ? formats::hub_cache_folder(variable) : fs::path(model.cache_dir);
}

std::string found(config::RunConfig& config,
                  const std::string& option,
                  const std::string& name,
                  const std::string& revision) {
  std::error_code error;
  if (fs::exists(name, error) || !formats::is_hub_id(name)) {
    return name;
  }
  const std::string folder =
      formats::find_in_hub_cache(cache_of(config.model), name, revision).string();
  config.notices.push_back(fmt::format("{} {} is {}", option, name, folder));
  return folder;
}

}  // namespace

std::string folder_of(const std::string& name) {
  std::error_code error;
  if (fs::exists(name, error) || !formats::is_hub_id(name)) {
    return name;
  }
  try {
    return formats::find_in_hub_cache(formats::hub_cache_folder(variable), name, "main").string();
  } catch (const Error&) {
    return name;  // a path that is not there, as far as anybody can tell
  }
}

void find_models(config::RunConfig& config) {
  config::ModelSettings& model = config.model;
  if (!model.model_name_or_path.empty()) {
    model.model_name_or_path =
        found(config, "model_name_or_path", model.model_name_or_path, model.model_revision);
  }
  std::vector<std::string> adapters;
  for (const std::string& name : model.adapter_folders()) {
    adapters.push_back(found(config, "adapter_name_or_path", name, "main"));
  }
  model.adapter_name_or_path = join(adapters, ",");
}

}  // namespace zeroth::cli
