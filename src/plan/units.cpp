#include "plan/units.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/error.h"
#include "shapes/families.h"
#include "shapes/products.h"
#include "shard/flat_layout.h"

namespace zeroth::plan {
namespace {

constexpr std::array<const char*, kNumBlockLinears> kLinearNames{
    "q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"};

void mark(const std::string& module, std::array<bool, kNumBlockLinears>& marks) {
  for (std::size_t i = 0; i < kNumBlockLinears; ++i) {
    marks[i] = marks[i] || module.ends_with(kLinearNames[i]);
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

// Which parameters of the base train.
using Trains = std::function<bool(const std::string&)>;

UnitSize sized(const shapes::UnitShape& shape,
               const std::vector<shapes::AdaptedModule>& modules,
               const Trains& trains,
               std::int64_t ranks) {
  UnitSize unit;
  std::vector<shapes::ParameterShape> trained;
  for (const shapes::ParameterShape& parameter : shape.parameters) {
    if (trains(parameter.name)) {
      trained.push_back(parameter);
      mark(parameter.name.substr(0, parameter.name.rfind('.')), unit.trained);
      unit.head_trains = unit.head_trains || parameter.name == "lm_head.weight";
    } else {
      unit.frozen += parameter.numel();
    }
  }
  for (const shapes::AdaptedModule& module : modules) {
    const auto more = shapes::lora_parameters(module);
    trained.insert(trained.end(), more.begin(), more.end());
    mark(module.module, unit.adapted);
    unit.ranks += module.rank;
    unit.dora_outputs += module.dora ? module.out_features : 0;
  }
  take_trainable(numels_of(trained), ranks, unit);
  return unit;
}

struct Trained {
  shapes::ModelShape shape;
  std::vector<shapes::ParameterShape> frozen_factors;
  std::vector<shapes::ParameterShape> pure_factors;  // of these
  std::vector<UnitSize> units;
};

Trained trained_model(const PlanInput& input) {
  shapes::ModelShape model = shapes::model_shape(input.model);
  shapes::LoraTargets lora;
  lora.by_unit.resize(model.units.size());
  std::set<std::string> frozen_but;
  if (input.lora) {
    lora = shapes::lora_targets(model, *input.lora);
    frozen_but = lora.trained;
    model = lora.own_head ? shapes::with_own_head(std::move(model)) : std::move(model);
  } else if (input.freeze) {
    frozen_but = shapes::freeze_trained(model, *input.freeze);
  }
  const Trains trains = [&](const std::string& name) {
    return input.trains_all() || frozen_but.contains(name);
  };
  Trained trained;
  for (std::size_t i = 0; i < model.units.size(); ++i) {
    trained.units.push_back(sized(model.units[i], lora.by_unit[i], trains, input.ranks));
  }
  trained.frozen_factors = shapes::factors_of(model);
  trained.pure_factors = shapes::pure_factors_of(model, lora);
  for (auto* const factors : {&trained.frozen_factors, &trained.pure_factors}) {
    std::erase_if(*factors, [&](const auto& factor) { return trains(factor.name); });
  }
  trained.shape = std::move(model);
  return trained;
}

// A tied head reads the embedding's weight, which is the only parameter there.
void take_borrowed(const shapes::ModelShape& model, std::vector<UnitSize>& units) {
  for (std::size_t i = 0; i < units.size(); ++i) {
    if (!model.units[i].borrowed.empty()) {
      units[i].borrowed_padded = units.front().padded;
      units[i].head_trains = units.front().frozen == 0;
    }
  }
}

std::int64_t filled_up(std::int64_t size, std::int64_t block) {
  return (size + block - 1) / block * block;
}

// In the blocks of oneDNN's products: 64 columns, and as many rows as fill 16 registers' lanes.
void take_packed(const PlanInput& input,
                 const std::vector<shapes::ParameterShape>& factors,
                 ModelSize& size) {
  constexpr std::int64_t kColumns = 64;
  const std::int64_t rows = 64 / input.compute_bytes;
  for (const shapes::ParameterShape& factor : factors) {
    const std::int64_t out = factor.shape[0];
    const std::int64_t in = factor.shape[1];
    size.packed_forward += filled_up(in, rows) * filled_up(out, kColumns);
    size.packed_backward += filled_up(out, rows) * filled_up(in, kColumns);
  }
}

}  // namespace

ModelSize size_of(const PlanInput& input) {
  Trained model = trained_model(input);
  ModelSize size{.units = std::move(model.units)};
  take_borrowed(model.shape, size.units);
  for (const UnitSize& unit : size.units) {
    size.trainable += unit.trainable;
    size.frozen += unit.frozen;
    size.padded += unit.padded;
    size.largest_padded = std::max(size.largest_padded, unit.padded);
    size.largest_unit = std::max(size.largest_unit, unit.padded + unit.frozen);
    size.borrows = size.borrows || unit.borrowed_padded > 0;
  }
  size.shard = size.padded / input.ranks;
  take_packed(input, model.frozen_factors, size);
  for (const shapes::ParameterShape& factor : model.pure_factors) {
    size.packed_alone += factor.numel();
  }
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
