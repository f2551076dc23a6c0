#include "models/llama.h"

#include <cmath>
#include <functional>

#include "base/check.h"
#include "base/random.h"
#include "formats/mapped_file.h"
#include "models/llama_units.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

namespace zeroth::models {
namespace {

using formats::DType;
using shapes::ParameterShape;

// Gives a base parameter its first value: in the type asked for, or as it is stored.
using WeightSource = std::function<void(Parameter&, const ParameterShape&, at::ScalarType)>;

at::ScalarType scalar_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return at::kFloat;
    case DType::kBF16:
      return at::kBFloat16;
    case DType::kF16:
      return at::kHalf;
    case DType::kF64:
      return at::kDouble;
    default:
      break;
  }
  ZEROTH_CHECK(false, "weights of type {} have not been refused", formats::dtype_name(dtype));
  return at::kFloat;
}

// The tensor where the file is mapped, by `owner`. from_blob takes a pointer to non-const data; the
// pages cannot be written all the same.
at::Tensor borrowed(const formats::TensorView& view, std::shared_ptr<const void> owner = nullptr) {
  auto* data = const_cast<std::byte*>(view.bytes.data());
  return at::from_blob(
      data,
      view.shape,
      [owner = std::move(owner), bytes = view.bytes](void*) { formats::drop_pages(bytes); },
      at::TensorOptions(scalar_type(view.dtype)));
}

// One number per name, the same on every machine (FNV-1a).
std::uint64_t name_number(const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : name) {
    hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  }
  return hash;
}

template <typename Draw>
at::Tensor drawn(const ParameterShape& shape, std::uint64_t seed, at::ScalarType dtype, Draw draw) {
  at::Tensor tensor = at::empty(shape.shape, at::kFloat);
  RandomStream stream(seed, name_number(shape.name));
  auto* data = tensor.data_ptr<float>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    data[i] = static_cast<float>(draw(stream));
  }
  return tensor.to(dtype);
}

at::Tensor random_weight(const ParameterShape& shape,
                         double deviation,
                         std::uint64_t seed,
                         at::ScalarType dtype) {
  if (!shape.decays) {
    const bool is_bias = shape.name.ends_with(".bias");
    return is_bias ? at::zeros(shape.shape, dtype) : at::ones(shape.shape, dtype);
  }
  return drawn(shape, seed, dtype, [deviation](RandomStream& stream) {
    return deviation * stream.normal();
  });
}

// Kaiming uniform with a = sqrt(5) is uniform in +-1/sqrt(in).
at::Tensor first_lora_value(const ParameterShape& shape, std::uint64_t seed, at::ScalarType dtype) {
  if (shape.name.ends_with(".lora_B.weight")) {
    return at::zeros(shape.shape, dtype);
  }
  const double bound = 1.0 / std::sqrt(static_cast<double>(shape.shape.back()));
  return drawn(shape, seed, dtype, [bound](RandomStream& stream) {
    return bound * (2.0 * stream.uniform() - 1.0);
  });
}

class Builder {
 public:
  Builder(const formats::ModelConfig& config, const ModelOptions& options, WeightSource source)
      : options_(options), source_(std::move(source)) {
    model_.config = config;
    model_.shape = shapes::model_shape(config);
    if (options.lora) {
      model_.lora = shapes::lora_targets(model_.shape, options.lora->targets);
    }
  }

  Model build() {
    const formats::ModelConfig& config = model_.config;
    auto positions = std::make_shared<Positions>(config.rope, config.head_dim);
    for (std::size_t index = 0; index < model_.shape.units.size(); ++index) {
      model_.units.push_back(make_unit(index, positions));
    }
    return std::move(model_);
  }

 private:
  std::unique_ptr<Unit> make_unit(std::size_t index, const std::shared_ptr<Positions>& positions) {
    const formats::ModelConfig& config = model_.config;
    const shapes::UnitShape& shape = model_.shape.units[index];
    std::vector<Parameter> parameters = parameters_of(index);
    if (index == 0) {
      return std::make_unique<EmbeddingUnit>(std::move(parameters), positions);
    }
    if (index + 1 == model_.shape.units.size()) {
      Parameter* tied =
          shape.borrowed.empty() ? nullptr : &model_.units.front()->parameters().front();
      return std::make_unique<HeadUnit>(std::move(parameters), tied, config.rms_norm_eps);
    }
    const BlockOptions block{.layer = static_cast<std::int64_t>(index) - 1,
                             .num_heads = config.num_attention_heads,
                             .num_key_heads = config.num_key_value_heads,
                             .head_dim = config.head_dim,
                             .norm_epsilon = config.rms_norm_eps,
                             .lora = lora_scale()};
    return std::make_unique<BlockUnit>(shape, std::move(parameters), block, positions);
  }

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

Model load_llama(const formats::ModelConfig& config,
                 const std::shared_ptr<const formats::ModelWeights>& weights,
                 const ModelOptions& options) {
  return Builder(config,
                 options,
                 [&](Parameter& parameter, const ParameterShape& shape, at::ScalarType /*dtype*/) {
                   const formats::TensorView& view = weights->at(shape.name);
                   parameter.shape = view.shape;
                   parameter.stored = borrowed(view, weights);
                 })
      .build();
}

Model random_llama(const formats::ModelConfig& config, const ModelOptions& options) {
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
            borrowed(file.at(name))
                .to(parameter.value.scalar_type(), /*non_blocking=*/false, /*copy=*/true);
      }
    }
  }
}

}  // namespace zeroth::models
