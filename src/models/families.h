#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "models/lora.h"
#include "models/unit.h"
#include "shapes/families.h"

// Which units compute a family. docs/add-a-model.md tells how to add one.
namespace zeroth::models {

// What a family's units are made of. `config` and `shape` live as long as the call only.
struct UnitParts {
  const formats::ModelConfig& config;
  const shapes::ModelShape& shape;
  std::vector<std::vector<Parameter>> parameters{};  // by unit, in the shape's order; LoRA's last
  ModelLora lora{};
};

struct Family {
  std::string_view model_type;
  UnitList (*units)(UnitParts parts);
};

[[nodiscard]] std::span<const Family> families();

// The tables that a model's family is looked up in: the built ones, or a test's.
struct FamilyTables {
  std::span<const shapes::Family> shapes = shapes::families();
  std::span<const Family> units = families();
};

[[nodiscard]] UnitList make_units(UnitParts parts, std::span<const Family> among);

}  // namespace zeroth::models
