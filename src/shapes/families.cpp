#include "shapes/families.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/check.h"
#include "base/file.h"
#include "base/text.h"
#include "formats/strict_json.h"
#include <fmt/format.h>

namespace zeroth::shapes {

// One family a file in shapes/families/.
Family llama();
Family mistral();
Family qwen2();
Family qwen3();
Family gemma();
Family gemma2();
Family gemma3_text();

std::span<const Family> families() {
  static const std::array kFamilies{
      llama(), mistral(), qwen2(), qwen3(), gemma(), gemma2(), gemma3_text()};
  return kFamilies;
}

namespace {

using formats::JsonFields;

std::string names_of(std::span<const Family> among) {
  std::vector<std::string> names;
  for (const Family& family : among) {
    names.push_back(fmt::format("\"{}\"", family.model_type));
  }
  return join(names, ", ");
}

const Family& family_of(const Json& raw, const std::string& source, std::span<const Family> among) {
  JsonFields fields(raw, source);
  const std::string name = fields.text("model_type");
  const Family* family = find_family(name, among);
  if (family == nullptr && !name.empty()) {
    fields.unsupported("model_type",
                       fmt::format("this family is not built; {} are", names_of(among)));
  }
  fields.require_sound("model_type names the family, e.g. \"llama\".",
                       "Choose a model of one of these families.");
  if (family == nullptr) {
    fields.fault("model_type", "must not be empty");
    fields.require_sound("model_type names the family, e.g. \"llama\".", "");
  }
  return *family;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return result;
}

// Without regard to case: first conversions of LLaMA spelt it LLaMAForCausalLM.
void check_architecture(JsonFields& fields, const Family& family) {
  const Json& names = fields.value("architectures");
  const auto is_it = [&](const Json& name) {
    return name.is_string() && lower(name.get<std::string>()) == lower(family.architecture);
  };
  if (names.is_array() && !names.empty() && std::none_of(names.begin(), names.end(), is_it)) {
    fields.unsupported("architectures",
                       fmt::format("of this family only {} is built", family.architecture));
  }
}

}  // namespace

const Family* find_family(std::string_view model_type, std::span<const Family> among) {
  const auto found = std::find_if(among.begin(), among.end(), [&](const Family& family) {
    return family.model_type == model_type;
  });
  return found == among.end() ? nullptr : &*found;
}

formats::ModelConfig read_model_config(const std::filesystem::path& path,
                                       std::span<const Family> among) {
  const std::string source = path.string();
  formats::ModelConfig config;
  config.raw = formats::parse_object(read_file(path, ErrorKind::kModel), source, ErrorKind::kModel);
  const Family& family = family_of(config.raw, source, among);
  JsonFields fields(config.raw, source);
  config.model_type = fields.text("model_type");
  family.read(fields, config);
  check_architecture(fields, family);
  formats::refuse_unknown_fields(fields);
  fields.require_sound("Correct the file, or fetch the model again.",
                       "Choose a model without these settings; a field that is only somebody's "
                       "note may be taken out of the file.");
  return config;
}

ModelShape model_shape(const formats::ModelConfig& config, std::span<const Family> among) {
  const Family* family = find_family(config.model_type, among);
  ZEROTH_CHECK(family != nullptr, "no shape for the family {}", config.model_type);
  return family->shape(config);
}

}  // namespace zeroth::shapes
