#include "models/model.h"

#include <functional>

#include "models/first_values.h"
#include "shapes/families.h"

namespace zeroth::models {
namespace {

using shapes::ParameterShape;

// Gives a base parameter its first value: in the type asked for, or as it is stored.
using WeightSource = std::function<void(Parameter&, const ParameterShape&, at::ScalarType)>;

class Builder {
 public:
  Builder(const formats::ModelConfig& config, const ModelOptions& options, WeightSource source)
      : options_(options), source_(std::move(source)) {
    model_.config = config;
    model_.shape = shapes::model_shape(config, options.families.shapes);
    if (options.lora) {
      model_.lora = shapes::lora_targets(model_.shape, options.lora->targets);
    }
  }

  Model build() {
    UnitParts parts{.config = model_.config, .shape = model_.shape, .lora = lora_scale()};
    for (std::size_t index = 0; index < model_.shape.units.size(); ++index) {
      parts.parameters.push_back(parameters_of(index));
    }
    model_.units = make_units(std::move(parts), options_.families.units);
    return std::move(model_);
  }

 private:
  std::vector<Parameter> parameters_of(std::size_t index) const {
    const bool base_trains = options_.trainable && !options_.lora;
    std::vector<Parameter> parameters;
    for (const ParameterShape& shape : model_.shape.units[index].parameters) {
      Parameter& parameter = parameters.emplace_back(
          Parameter{.name = shape.name, .trainable = base_trains, .decays = shape.decays});
      source_(parameter, shape, first_dtype(base_trains));
    }
    if (options_.lora) {
      for (const shapes::LinearShape& linear : model_.lora.by_unit[index]) {
        append_lora(linear, parameters);
      }
    }
    return parameters;
  }

  void append_lora(const shapes::LinearShape& linear, std::vector<Parameter>& parameters) const {
    for (const ParameterShape& shape : shapes::lora_parameters(linear, options_.lora->rank)) {
      parameters.push_back(
          {.name = shape.name,
           .value = first_lora_value(shape, options_.seed, first_dtype(options_.trainable)),
           .trainable = options_.trainable,
           .decays = true});
    }
  }

  // What trains starts in fp32, so that its master copy loses nothing; the engine makes the rounded
  // copy.
  [[nodiscard]] at::ScalarType first_dtype(bool trains) const {
    return trains ? at::kFloat : options_.dtype;
  }

  [[nodiscard]] LoraScale lora_scale() const {
    if (!options_.lora) {
      return {};
    }
    return {.scale = options_.lora->alpha / static_cast<double>(options_.lora->rank),
            .dropout = options_.lora->dropout};
  }

  ModelOptions options_;
  WeightSource source_;
  Model model_;
};

}  // namespace

Parameter* Model::find(const std::string& name) {
  for (const auto& unit : units) {
    for (Parameter& parameter : unit->parameters()) {
      if (parameter.name == name) {
        return &parameter;
      }
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
  return Builder(config,
                 options,
                 [&](Parameter& parameter, const ParameterShape& shape, at::ScalarType /*dtype*/) {
                   const formats::TensorView& view = weights->at(shape.name);
                   parameter.shape = view.shape;
                   parameter.stored = borrowed_tensor(view, weights);
                 })
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

void load_adapter(Model& model, const formats::SafetensorsFile& file) {
  for (const auto& unit : model.units) {
    for (Parameter& parameter : unit->parameters()) {
      const std::string name = formats::kAdapterPrefix + parameter.name;
      if (parameter.name.find(".lora_") != std::string::npos) {
        parameter.value =
            borrowed_tensor(file.at(name))
                .to(parameter.value.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
      }
    }
  }
}

}  // namespace zeroth::models
