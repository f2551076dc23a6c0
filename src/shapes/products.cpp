#include "shapes/products.h"

#include <algorithm>
#include <string_view>

namespace zeroth::shapes {
namespace {

using Says = std::function<bool(const std::string&)>;

// A linear, and whether gradients pass through it to something below.
struct Placed {
  LinearShape linear;
  std::int64_t rows = 0;
  bool passes_down = false;
};

bool trains_in(const UnitShape& unit, const Says& trains, const Says& adapted) {
  return std::any_of(unit.parameters.begin(),
                     unit.parameters.end(),
                     [&](const ParameterShape& parameter) { return trains(parameter.name); }) ||
         std::any_of(unit.linears.begin(), unit.linears.end(), [&](const LinearShape& linear) {
           return adapted(linear.module);
         });
}

bool reads_the_units_input(const std::string& module) {
  return module.ends_with(".q_proj") || module.ends_with(".k_proj") || module.ends_with(".v_proj");
}

// In the first unit that trains, what reads its input passes nothing down, but for the norm before
// it where that trains.
bool norm_trains(const UnitShape& unit, const Says& trains) {
  return std::any_of(unit.parameters.begin(), unit.parameters.end(), [&](const auto& parameter) {
    return parameter.name.ends_with("input_layernorm.weight") && trains(parameter.name);
  });
}

std::vector<Placed> placed_linears(const ModelShape& model,
                                   const ProductRows& rows,
                                   const Says& trains,
                                   const Says& adapted) {
  std::vector<Placed> placed;
  bool below = false;
  for (std::size_t index = 0; index < model.units.size(); ++index) {
    const UnitShape& unit = model.units[index];
    const bool here = trains_in(unit, trains, adapted);
    for (const LinearShape& linear : unit.linears) {
      const bool first = reads_the_units_input(linear.module) && !norm_trains(unit, trains);
      placed.push_back({linear, rows.tokens, below || (here && !first)});
    }
    if (index + 1 == model.units.size()) {
      placed.push_back({unit.ends.front(), rows.targets, below || here});
    }
    below = below || here;
    for (const LinearShape& end : unit.ends) {
      below = below || adapted(end.module);
    }
  }
  return placed;
}

bool multiplies_by(const UnitShape& unit, bool is_last, const std::string& name) {
  const auto is_its_weight = [&](const LinearShape& linear) {
    return name == linear.module + ".weight";
  };
  return std::any_of(unit.linears.begin(), unit.linears.end(), is_its_weight) ||
         (is_last && std::any_of(unit.ends.begin(), unit.ends.end(), is_its_weight));
}

}  // namespace

std::vector<ParameterShape> factors_of(const ModelShape& model) {
  std::vector<ParameterShape> factors;
  const std::vector<std::string>& borrowed = model.units.back().borrowed;
  for (const UnitShape& unit : model.units) {
    const bool is_last = &unit == &model.units.back();
    for (const ParameterShape& parameter : unit.parameters) {
      if (multiplies_by(unit, is_last, parameter.name) ||
          std::find(borrowed.begin(), borrowed.end(), parameter.name) != borrowed.end()) {
        factors.push_back(parameter);
      }
    }
  }
  return factors;
}

std::vector<ParameterShape> pure_factors_of(const ModelShape& model, const LoraTargets& lora) {
  constexpr std::string_view kWeight = ".weight";
  const std::vector<std::string>& looked_up = model.units.back().borrowed;
  std::vector<ParameterShape> factors = factors_of(model);
  std::erase_if(factors, [&](const ParameterShape& factor) {
    const AdaptedModule* const adapted =
        lora.find(factor.name.substr(0, factor.name.size() - kWeight.size()));
    return std::find(looked_up.begin(), looked_up.end(), factor.name) != looked_up.end() ||
           (adapted != nullptr && adapted->dora);
  });
  return factors;
}

std::vector<ProductShape> products_of_micro_step(const ModelShape& model,
                                                 const ProductRows& rows,
                                                 const Says& trains,
                                                 const Says& adapted) {
  const std::vector<Placed> placed = placed_linears(model, rows, trains, adapted);
  const std::string tied =
      model.units.back().borrowed.empty() ? "" : model.units.back().borrowed.front();
  const auto weight_trains = [&](const Placed& at) {
    const bool is_tied_head = &at == &placed.back() && !tied.empty();
    return trains(is_tied_head ? tied : at.linear.module + ".weight");
  };
  std::vector<ProductShape> products;
  for (const Placed& at : placed) {
    products.push_back({.rows = at.rows,
                        .inner = at.linear.in_features,
                        .columns = at.linear.out_features,
                        .of = ProductOf::kForward,
                        .frozen = !weight_trains(at)});
  }
  for (auto at = placed.rbegin(); at != placed.rend(); ++at) {
    const LinearShape& linear = at->linear;
    const bool trained = weight_trains(*at);
    if (at->passes_down) {
      products.push_back({.rows = at->rows,
                          .inner = linear.out_features,
                          .columns = linear.in_features,
                          .of = ProductOf::kInputGradient,
                          .frozen = !trained});
    }
    if (trained) {
      products.push_back({.rows = linear.out_features,
                          .inner = at->rows,
                          .columns = linear.in_features,
                          .of = ProductOf::kWeightGradient});
    }
  }
  return products;
}

}  // namespace zeroth::shapes
