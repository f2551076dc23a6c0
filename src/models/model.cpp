#include "models/model.h"

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "base/check.h"
#include "models/base_weights.h"
#include "models/first_values.h"
#include "models/lora.h"
#include "shapes/families.h"
#include "shapes/products.h"

namespace zeroth::models {
namespace {

using shapes::ParameterShape;

std::set<std::string> names_of(const std::vector<ParameterShape>& parameters) {
  std::set<std::string> names;
  for (const ParameterShape& parameter : parameters) {
    names.insert(parameter.name);
  }
  return names;
}

// Gives a base parameter its first value: in the type asked for, or as it is stored.
using WeightSource = std::function<void(Parameter&, const ParameterShape&, at::ScalarType)>;

class Builder {
 public:
  // `own_head`: a tied head that is no longer one with its embedding.
  Builder(const formats::ModelConfig& config,
          const ModelOptions& options,
          WeightSource source,
          bool own_head = false)
      : options_(options), source_(std::move(source)) {
    model_.config = config;
    model_.shape = shapes::model_shape(config, options.families.shapes);
    if (own_head) {
      model_.shape = shapes::with_own_head(model_.shape);
    }
    if (options.lora) {
      model_.lora = shapes::lora_targets(model_.shape, *options.lora);
    }
    if (options.freeze) {
      trained_ = shapes::freeze_trained(model_.shape, *options.freeze);
    }
    if (model_.lora.own_head) {
      model_.shape = shapes::with_own_head(model_.shape);
    }
  }

  Model build() {
    factors_ = names_of(shapes::factors_of(model_.shape));
    pure_factors_ = names_of(shapes::pure_factors_of(model_.shape, model_.lora));
    for (std::size_t index = 0; index < model_.shape.units.size(); ++index) {
      parameters_.push_back(parameters_of(index));
    }
    model_.units = make_units({.config = model_.config,
                               .shape = model_.shape,
                               .parameters = std::move(parameters_),
                               .lora = lora()},
                              options_.families.units);
    return std::move(model_);
  }

 private:
  [[nodiscard]] bool base_trains(const std::string& name) const {
    if (options_.lora) {
      return options_.trainable && model_.lora.trained.contains(name);
    }
    return options_.trainable && (!options_.freeze || trained_.contains(name));
  }

  std::vector<Parameter> parameters_of(std::size_t index) const {
    std::vector<Parameter> parameters;
    for (const ParameterShape& shape : model_.shape.units[index].parameters) {
      const bool trains = base_trains(shape.name);
      Parameter& parameter =
          parameters.emplace_back(Parameter{.name = shape.name,
                                            .trainable = trains,
                                            .decays = shape.decays,
                                            .is_factor = factors_.contains(shape.name),
                                            .is_pure_factor = pure_factors_.contains(shape.name)});
      source_(parameter, shape, first_dtype(trains));
    }
    if (options_.lora) {
      const std::size_t num_base = parameters.size();
      for (const shapes::AdaptedModule& module : model_.lora.by_unit[index]) {
        append_lora(module, num_base, parameters);
      }
    }
    return parameters;
  }

  void append_lora(const shapes::AdaptedModule& module,
                   std::size_t num_base,
                   std::vector<Parameter>& parameters) const {
    const bool gaussian = options_.lora->start == formats::kGaussianStart;
    const at::ScalarType dtype = first_dtype(options_.trainable);
    const std::vector<ParameterShape> wanted = shapes::lora_parameters(module);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      constexpr std::size_t kMagnitude = 2;
      const at::Tensor value = i == kMagnitude
                                   ? first_magnitude(module, num_base, parameters).to(dtype)
                                   : first_lora_value(wanted[i], gaussian, options_.seed, dtype);
      parameters.push_back({.name = wanted[i].name,
                            .value = value,
                            .trainable = options_.trainable,
                            .decays = true});
    }
  }

  // The lengths of the weight's rows in the type that computes, so that B = 0 changes nothing.
  at::Tensor first_magnitude(const shapes::AdaptedModule& module,
                             std::size_t num_base,
                             const std::vector<Parameter>& parameters) const {
    const int index = index_of(parameters, module.module + ".weight");
    const Parameter* weight = index >= 0 && static_cast<std::size_t>(index) < num_base
                                  ? &parameters[static_cast<std::size_t>(index)]
                                  : &parameters_.front().front();  // of a tied head
    const at::Tensor& value = weight->value.defined() ? weight->value : weight->stored;
    return row_lengths(value.to(options_.dtype), {}, {}, 0);
  }

  // What trains starts in fp32, so that its master copy loses nothing; the engine makes the rounded
  // copy.
  [[nodiscard]] at::ScalarType first_dtype(bool trains) const {
    return trains ? at::kFloat : options_.dtype;
  }

  [[nodiscard]] ModelLora lora() const {
    ModelLora lora{.dropout = options_.lora ? options_.lora->dropout : 0, .modules = {}};
    for (const auto& modules : model_.lora.by_unit) {
      lora.modules.insert(lora.modules.end(), modules.begin(), modules.end());
    }
    return lora;
  }

  ModelOptions options_;
  WeightSource source_;
  Model model_;
  std::vector<std::vector<Parameter>> parameters_;  // by unit
  std::set<std::string> trained_;                   // freeze
  std::set<std::string> factors_;                   // what products multiply by
  std::set<std::string> pure_factors_;
};

}  // namespace

Parameter* Model::find(const std::string& name) {
  return const_cast<Parameter*>(std::as_const(*this).find(name));
}

const Parameter* Model::find(const std::string& name) const {
  for (const auto& unit : units) {
    const auto& parameters = unit->parameters();
    if (const int index = index_of(parameters, name); index >= 0) {
      return &parameters[static_cast<std::size_t>(index)];
    }
  }
  return nullptr;
}

std::int64_t Model::num_parameters() const {
  return count_parameters(units).all;
}

std::int64_t Model::num_trainable() const {
  return count_parameters(units).trainable;
}

Model load_model(const formats::ModelConfig& config,
                 const std::shared_ptr<const formats::ModelWeights>& weights,
                 const ModelOptions& options) {
  const BaseWeights base(config, weights, options.merge);
  return Builder(
             config,
             options,
             [&](Parameter& parameter, const ParameterShape& shape, at::ScalarType /*dtype*/) {
               parameter.shape = shape.shape;
               parameter.stored = base.value(shape.name);
             },
             config.tie_word_embeddings != base.config().tie_word_embeddings)
      .build();
}

Model random_model(const formats::ModelConfig& config, const ModelOptions& options) {
  return Builder(config,
                 options,
                 [&](Parameter& parameter, const ParameterShape& shape, at::ScalarType dtype) {
                   parameter.value =
                       random_weight(shape, config.initializer_range, options.seed, dtype);
                 })
      .build();
}

void load_adapter(Model& model, const formats::TensorFile& file) {
  for (const shapes::SavedTensor& saved : model.lora.saved) {
    if (!file.contains(saved.key)) {
      continue;
    }
    Parameter* parameter = model.find(saved.parameter);
    ZEROTH_CHECK(parameter != nullptr, "the model has no {}", saved.parameter);
    const at::Tensor value = borrowed_tensor(file.at(saved.key));
    ZEROTH_CHECK(value.sizes() == at::IntArrayRef(saved.shape),
                 "{} is not of the shape that check_adapter asks for",
                 saved.key);
    if (parameter->value.defined()) {
      parameter->value =
          value.to(parameter->value.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
    } else {
      parameter->stored = value.clone();
    }
  }
}

void set_loraplus_rates(Model& model, double ratio, double embedding_factor) {
  for (const auto& unit : model.units) {
    for (Parameter& parameter : unit->parameters()) {
      if (parameter.name.ends_with(".lora_embedding_B")) {
        parameter.rate_factor = embedding_factor;
      } else if (parameter.name.ends_with(".lora_B.weight") || parameter.sizes().size() == 1) {
        parameter.rate_factor = ratio;
      }
    }
  }
}

}  // namespace zeroth::models
