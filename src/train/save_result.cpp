#include "train/save_result.h"

#include <functional>

#include "base/check.h"
#include "base/file.h"
#include "formats/weights_writer.h"
#include "text/tokenizer.h"

namespace zeroth::train {
namespace {

namespace fs = std::filesystem;
using formats::DType;
using formats::TensorToWrite;

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

using Value = std::function<at::Tensor()>;

// The tensors of a result. Each is made when its turn comes and dropped when the next one's does:
// a rank holds one at a time.
class TensorsInTurn {
 public:
  explicit TensorsInTurn(at::ScalarType dtype) : dtype_(dtype) {}

  TensorsInTurn(const TensorsInTurn&) = delete;
  TensorsInTurn& operator=(const TensorsInTurn&) = delete;

  void add(const std::string& name, at::IntArrayRef shape, Value value) {
    to_write_.push_back({.name = name,
                         .dtype = stored_type(dtype_),
                         .shape = shape.vec(),
                         .bytes = [this, value = std::move(value)] { return take_turn(value); }});
  }

  [[nodiscard]] const std::vector<TensorToWrite>& to_write() const noexcept { return to_write_; }

 private:
  std::span<const std::byte> take_turn(const Value& value) {
    held_ = at::Tensor();  // before the next one is made
    held_ = value().detach().to(dtype_).contiguous();
    return {static_cast<const std::byte*>(held_.data_ptr()), held_.nbytes()};
  }

  at::ScalarType dtype_;
  at::Tensor held_;
  std::vector<TensorToWrite> to_write_;
};

// `value_of` is asked later, for each parameter of `model` by itself.
void add_all(TensorsInTurn& tensors,
             const models::Model& model,
             const std::function<at::Tensor(const models::Parameter&)>& value_of) {
  for (const auto& unit : model.units) {
    for (const models::Parameter& parameter : unit->parameters()) {
      tensors.add(parameter.name, parameter.sizes(), [&parameter, value_of] {
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
  TensorsInTurn tensors(at::kFloat);
  for (const shapes::SavedTensor& saved : model.lora.saved) {
    const models::Parameter* parameter = model.find(saved.parameter);
    ZEROTH_CHECK(parameter != nullptr, "the model has no {}", saved.parameter);
    tensors.add(saved.key, saved.shape, [&engine, parameter] {
      return parameter->trainable ? engine.parameter_value(parameter->name) : parameter->value;
    });
  }
  if (engine.comm().rank() != 0) {
    formats::walk_weights_file(tensors.to_write());
    return {};
  }
  const fs::path weights = folder / "adapter_model.safetensors";
  formats::write_weights_file(weights, tensors.to_write());
  formats::write_adapter_config(folder, config);
  return {weights, folder / "adapter_config.json"};
}

std::vector<fs::path> save_model(const fs::path& folder,
                                 const models::Model& model,
                                 const engine::Engine& engine,
                                 at::ScalarType dtype) {
  TensorsInTurn tensors(dtype);
  add_all(tensors, model, [&engine](const models::Parameter& parameter) {
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
  TensorsInTurn tensors(dtype);
  add_all(tensors, model, [](const models::Parameter& parameter) { return parameter.value; });
  return write_model(folder, model, dtype, tensors);
}

std::vector<fs::path> companions_of(const fs::path& model_folder) {
  std::vector<fs::path> files = text::Tokenizer::files_in(model_folder);
  if (fs::exists(model_folder / "generation_config.json")) {
    files.push_back(model_folder / "generation_config.json");
  }
  return files;
}

std::vector<fs::path> copy_companions(const fs::path& model_folder, const fs::path& folder) {
  std::vector<fs::path> written;
  for (const fs::path& source : companions_of(model_folder)) {
    const fs::path target = folder / source.filename();
    if (!fs::exists(target) || !fs::equivalent(source, target)) {
      write_file_atomically(target, read_file(source, ErrorKind::kModel));
    }
    written.push_back(target);
  }
  return written;
}

}  // namespace zeroth::train
