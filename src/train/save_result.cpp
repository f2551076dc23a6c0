#include "train/save_result.h"

#include <functional>

#include "base/check.h"
#include "formats/weights_writer.h"
#include "train/tensors_in_turn.h"

namespace zeroth::train {
namespace {

namespace fs = std::filesystem;
using formats::DType;

DType stored_type(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat:
      return DType::kF32;
    case at::kBFloat16:
      return DType::kBF16;
    case at::kHalf:
      return DType::kF16;
    default:
      break;
  }
  ZEROTH_CHECK(false, "results of type {}", static_cast<int>(dtype));
  return DType::kF32;
}

// `value_of` is asked later, for each parameter of `model` by itself.
void add_all(TensorsInTurn& tensors,
             const models::Model& model,
             at::ScalarType dtype,
             const std::function<at::Tensor(const models::Parameter&)>& value_of) {
  for (const auto& unit : model.units) {
    for (const models::Parameter& parameter : unit->parameters()) {
      tensors.add(parameter.name, stored_type(dtype), parameter.sizes(), [&parameter, value_of] {
        return value_of(parameter);
      });
    }
  }
}

std::vector<fs::path> write_model(const fs::path& folder,
                                  const models::Model& model,
                                  at::ScalarType dtype,
                                  const TensorsInTurn& tensors) {
  std::vector<fs::path> files = formats::write_model_weights(folder, tensors.to_write());
  formats::copy_config(model.config, stored_type(dtype), folder);
  files.push_back(folder / "config.json");
  return files;
}

}  // namespace

std::vector<fs::path> save_adapter(const fs::path& folder,
                                   const models::Model& model,
                                   const engine::Engine& engine,
                                   const formats::AdapterConfig& config) {
  TensorsInTurn tensors;
  for (const shapes::SavedTensor& saved : model.lora.saved) {
    const models::Parameter* parameter = model.find(saved.parameter);
    ZEROTH_CHECK(parameter != nullptr, "the model has no {}", saved.parameter);
    tensors.add(saved.key, DType::kF32, saved.shape, [&engine, parameter] {
      return parameter->trainable ? engine.parameter_value(parameter->name) : parameter->value;
    });
  }
  if (engine.comm().rank() != 0) {
    formats::walk_weights_file(tensors.to_write());
    return {};
  }
  const fs::path weights = folder / formats::kAdapterWeightsFile;
  formats::write_weights_file(weights, tensors.to_write());
  formats::write_adapter_config(folder, config);
  return {weights, folder / "adapter_config.json"};
}

std::vector<fs::path> save_model(const fs::path& folder,
                                 const models::Model& model,
                                 const engine::Engine& engine,
                                 at::ScalarType dtype) {
  TensorsInTurn tensors;
  add_all(tensors, model, dtype, [&engine](const models::Parameter& parameter) {
    return parameter.trainable ? engine.parameter_value(parameter.name) : parameter.value;
  });
  if (engine.comm().rank() != 0) {
    formats::walk_model_weights(tensors.to_write());
    return {};
  }
  return write_model(folder, model, dtype, tensors);
}

std::vector<fs::path> save_model(const fs::path& folder,
                                 const models::Model& model,
                                 at::ScalarType dtype) {
  TensorsInTurn tensors;
  add_all(
      tensors, model, dtype, [](const models::Parameter& parameter) { return parameter.value; });
  return write_model(folder, model, dtype, tensors);
}

}  // namespace zeroth::train
