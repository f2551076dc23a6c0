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

// Tensors on their way to a file; they own what the views show.
class Collected {
 public:
  explicit Collected(at::ScalarType dtype) : dtype_(dtype) {}

  void add(const std::string& name, const at::Tensor& value) {
    const at::Tensor& kept = values_.emplace_back(value.detach().to(dtype_).contiguous());
    const auto* data = static_cast<const std::byte*>(kept.data_ptr());
    to_write_.push_back({.name = name,
                         .dtype = stored_type(dtype_),
                         .shape = kept.sizes().vec(),
                         .bytes = {data, static_cast<std::size_t>(kept.nbytes())}});
  }

  [[nodiscard]] const std::vector<TensorToWrite>& to_write() const noexcept { return to_write_; }

 private:
  at::ScalarType dtype_;
  std::vector<at::Tensor> values_;
  std::vector<TensorToWrite> to_write_;
};

using ValueOf = std::function<at::Tensor(const models::Parameter&)>;

Collected collect(const models::Model& model, at::ScalarType dtype, const ValueOf& value_of) {
  Collected tensors(dtype);
  for (const auto& unit : model.units) {
    for (const models::Parameter& parameter : unit->parameters()) {
      tensors.add(parameter.name, value_of(parameter));
    }
  }
  return tensors;
}

std::vector<fs::path> write_model(const fs::path& folder,
                                  const models::Model& model,
                                  at::ScalarType dtype,
                                  const Collected& tensors) {
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
  Collected tensors(at::kFloat);
  for (const auto& unit : model.units) {
    for (const models::Parameter& parameter : unit->parameters()) {
      if (parameter.trainable) {
        tensors.add("base_model.model." + parameter.name, engine.parameter_value(parameter.name));
      }
    }
  }
  if (engine.comm().rank() != 0) {
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
  const Collected tensors = collect(model, dtype, [&](const models::Parameter& parameter) {
    return parameter.trainable ? engine.parameter_value(parameter.name) : parameter.value;
  });
  return engine.comm().rank() == 0 ? write_model(folder, model, dtype, tensors)
                                   : std::vector<fs::path>{};
}

std::vector<fs::path> save_model(const fs::path& folder,
                                 const models::Model& model,
                                 at::ScalarType dtype) {
  return write_model(
      folder, model, dtype, collect(model, dtype, [](const models::Parameter& parameter) {
        return parameter.value;
      }));
}

std::vector<fs::path> copy_companions(const fs::path& model_folder, const fs::path& folder) {
  std::vector<fs::path> sources = text::Tokenizer::files_in(model_folder);
  if (fs::exists(model_folder / "generation_config.json")) {
    sources.push_back(model_folder / "generation_config.json");
  }
  std::vector<fs::path> written;
  for (const fs::path& source : sources) {
    const fs::path target = folder / source.filename();
    if (!fs::exists(target) || !fs::equivalent(source, target)) {
      write_file_atomically(target, read_file(source, ErrorKind::kModel));
    }
    written.push_back(target);
  }
  return written;
}

}  // namespace zeroth::train
