#include "shapes/products.h"

#include <algorithm>

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

}  // namespace

std::vector<ProductShape> products_of_micro_step(const ModelShape& model,
                                                 const ProductRows& rows,
                                                 const Says& trains,
                                                 const Says& adapted) {
  const std::vector<Placed> placed = placed_linears(model, rows, trains, adapted);
  std::vector<ProductShape> products;
  for (const auto& [linear, count, down] : placed) {
    products.push_back({count, linear.in_features, linear.out_features, ProductOf::kForward});
  }
  const std::string tied =
      model.units.back().borrowed.empty() ? "" : model.units.back().borrowed.front();
  for (auto at = placed.rbegin(); at != placed.rend(); ++at) {
    const auto& [linear, count, down] = *at;
    if (down) {
      products.push_back(
          {count, linear.out_features, linear.in_features, ProductOf::kInputGradient});
    }
    const bool is_tied_head = at == placed.rbegin() && !tied.empty();
    if (trains(is_tied_head ? tied : linear.module + ".weight")) {
      products.push_back(
          {linear.out_features, count, linear.in_features, ProductOf::kWeightGradient});
    }
  }
  return products;
}

}  // namespace zeroth::shapes
