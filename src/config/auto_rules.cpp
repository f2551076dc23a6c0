#include "config/auto_rules.h"

#include <filesystem>
#include <optional>

#include "base/file.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

struct HiddenSize {
  std::int64_t size = 0;
  std::string file;
};

std::optional<HiddenSize> hidden_size(const Values& values) {
  if (values["model_name_or_path"].is_null()) {
    return std::nullopt;
  }
  const auto file =
      std::filesystem::path(values["model_name_or_path"].get<std::string>()) / "config.json";
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    return std::nullopt;
  }
  // What is wrong with the model's file is said by whoever needs the model.
  const Json json = Json::parse(read_file(file, ErrorKind::kModel), nullptr, false);
  for (const Json* place :
       {&json, json.is_object() && json.contains("text_config") ? &json["text_config"] : &json}) {
    if (place->is_object() && place->contains("hidden_size") &&
        (*place)["hidden_size"].is_number_integer()) {
      return HiddenSize{(*place)["hidden_size"].get<std::int64_t>(), file.string()};
    }
  }
  return std::nullopt;
}

void fill(Values& values, const char* key, std::int64_t value, const std::string& how) {
  if (find_declaration(key) == nullptr) {
    return;
  }
  Setting setting = values.setting(key);
  if (!setting.auto_in.empty() && !values.given(key)) {
    setting.value = value;
    setting.source = {SourceKind::kRule, how};
    values.put(key, std::move(setting));
  }
}

}  // namespace

void fill_from_model(Values& values) {
  const std::optional<HiddenSize> hidden = hidden_size(values);
  if (!hidden) {
    return;
  }
  const std::int64_t h = hidden->size;
  const std::string from = fmt::format("hidden_size {} of {}", h, hidden->file);
  fill(values, "reduce_bucket_size", h * h, "hidden_size squared, " + from);
  fill(values,
       "zero_optimization.stage3_prefetch_bucket_size",
       9 * h * h / 10,
       "0.9 x hidden_size squared, " + from);
  fill(values,
       "zero_optimization.stage3_param_persistence_threshold",
       10 * h,
       "10 x hidden_size, " + from);
}

}  // namespace zeroth::config
