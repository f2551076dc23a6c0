#pragma once

#include <filesystem>
#include <span>
#include <string_view>

#include "formats/decoder_fields.h"
#include "shapes/model_shape.h"

// The families that are built, by the model_type of their config.json. docs/add-a-model.md tells
// how to add one.
namespace zeroth::shapes {

struct Family {
  std::string_view model_type;    // "qwen3"
  std::string_view architecture;  // "Qwen3ForCausalLM"
  // Fills the config from its fields; faults are collected in them.
  void (*read)(formats::JsonFields& fields, formats::ModelConfig& config);
  ModelShape (*shape)(const formats::ModelConfig& config);
};

[[nodiscard]] std::span<const Family> families();

// nullptr where there is none.
[[nodiscard]] const Family* find_family(std::string_view model_type,
                                        std::span<const Family> among = families());

// Reads `path` (a config.json). Missing file, missing or mistyped fields and shapes that do not
// divide are Errors of kModel; another family, or a field that Zeroth does not know or support, is
// one of kNotSupported. All name the file, the field and its value.
[[nodiscard]] formats::ModelConfig read_model_config(const std::filesystem::path& path,
                                                     std::span<const Family> among = families());

// The units of the config's family.
[[nodiscard]] ModelShape model_shape(const formats::ModelConfig& config,
                                     std::span<const Family> among = families());

}  // namespace zeroth::shapes
