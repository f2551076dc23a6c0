#include "plan/units.h"

#include <algorithm>

#include "base/error.h"
#include "shapes/families.h"
#include "shard/flat_layout.h"

namespace zeroth::plan {
namespace {

constexpr std::array<const char*, kNumBlockLinears> kLinearNames{
    "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};

void mark_adapted(const shapes::LinearShape& linear, UnitSize& unit) {
  for (std::size_t i = 0; i < kNumBlockLinears; ++i) {
    unit.adapted[i] = unit.adapted[i] || linear.module.ends_with(kLinearNames[i]);
  }
}

std::vector<std::int64_t> numels_of(const std::vector<shapes::ParameterShape>& parameters) {
  std::vector<std::int64_t> numels;
  for (const shapes::ParameterShape& parameter : parameters) {
    numels.push_back(parameter.numel());
  }
  return numels;
}

void take_trainable(const std::vector<std::int64_t>& numels, std::int64_t ranks, UnitSize& unit) {
  const shard::FlatLayout layout(numels, ranks);
  unit.trainable = layout.numel();
  unit.padded = layout.padded_numel();
  unit.largest_trainable = numels.empty() ? 0 : *std::max_element(numels.begin(), numels.end());
}

UnitSize fully_trained(const shapes::UnitShape& shape, std::int64_t ranks) {
  UnitSize unit;
  take_trainable(numels_of(shape.parameters), ranks, unit);
  return unit;
}

UnitSize adapted(const shapes::UnitShape& shape,
                 const std::vector<shapes::LinearShape>& linears,
                 const PlanInput& input) {
  UnitSize unit;
  std::vector<std::int64_t> numels;
  for (const shapes::LinearShape& linear : linears) {
    const auto more = numels_of(shapes::lora_parameters(linear, input.lora->rank));
    numels.insert(numels.end(), more.begin(), more.end());
    mark_adapted(linear, unit);
  }
  take_trainable(numels, input.ranks, unit);
  for (const std::int64_t numel : numels_of(shape.parameters)) {
    unit.frozen += numel;
  }
  return unit;
}

std::vector<UnitSize> units_of(const shapes::ModelShape& model, const PlanInput& input) {
  std::vector<UnitSize> units;
  if (!input.lora) {
    for (const shapes::UnitShape& shape : model.units) {
      units.push_back(fully_trained(shape, input.ranks));
    }
    return units;
  }
  const shapes::LoraTargets targets = shapes::lora_targets(model, input.lora->targets);
  for (std::size_t i = 0; i < model.units.size(); ++i) {
    units.push_back(adapted(model.units[i], targets.by_unit[i], input));
  }
  return units;
}

// A tied head reads the embedding's weight, which is the only parameter there.
void take_borrowed(const shapes::ModelShape& model, std::vector<UnitSize>& units) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!model.units[i].borrowed.empty()) {
      units[i].borrowed_padded = units.front().padded;
    }
  }
}

}  // namespace

ModelSize size_of(const PlanInput& input) {
  const shapes::ModelShape model = shapes::model_shape(input.model);
  ModelSize size{.units = units_of(model, input)};
  take_borrowed(model, size.units);
  for (const UnitSize& unit : size.units) {
    size.trainable += unit.trainable;
    size.frozen += unit.frozen;
    size.padded += unit.padded;
    size.largest_padded = std::max(size.largest_padded, unit.padded);
    size.largest_unit = std::max(size.largest_unit, unit.padded + unit.frozen);
    size.borrows = size.borrows || unit.borrowed_padded > 0;
  }
  size.shard = size.padded / input.ranks;
  require_trainable(size);
  return size;
}

void require_trainable(const ModelSize& model) {
  if (model.trainable == 0) {
    throw Error(ErrorKind::kConfig,
                "nothing is trained: no parameter of the model is trainable\n  Choose "
                "--finetuning_type full, or LoRA targets that the model has.");
  }
}

}  // namespace zeroth::plan
