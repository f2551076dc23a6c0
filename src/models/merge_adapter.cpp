#include "models/merge_adapter.h"

#include <algorithm>

#include "kernels/product.h"
#include "models/first_values.h"
#include "models/lora.h"

namespace zeroth::models {
namespace {

std::string module_of(const std::string& parameter) {
  return parameter.substr(0, parameter.rfind('.'));
}

const shapes::AdaptedModule* adapted_weight(const shapes::LoraTargets& targets,
                                            const std::string& parameter) {
  return parameter.ends_with(".weight") ? targets.find(module_of(parameter)) : nullptr;
}

// The base's own value in the adapter's file, where there is one.
const shapes::SavedTensor* own_value(const AdapterToMerge& adapter, const std::string& parameter) {
  const auto& saved = adapter.targets.saved;
  const auto found = std::find_if(saved.begin(), saved.end(), [&](const auto& tensor) {
    return tensor.parameter == parameter && adapter.file->contains(tensor.key);
  });
  return found == saved.end() ? nullptr : &*found;
}

at::Tensor wide(const formats::TensorFile& file, const std::string& name) {
  return borrowed_tensor(file.at(formats::kAdapterPrefix + name))
      .to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
}

at::Tensor with_product(const shapes::AdaptedModule& module,
                        const formats::TensorFile& file,
                        const at::Tensor& weight) {
  const auto names = shapes::lora_parameters(module);
  const at::Tensor a = wide(file, names[0].name);
  const at::Tensor b = wide(file, names[1].name);
  const at::Tensor product = kernels::product(b, a, at::kFloat);
  const at::Tensor sum = weight.add(module.is_embedding ? product.t() : product, module.scale);
  if (!module.dora) {
    return sum;
  }
  const at::Tensor lengths = row_lengths(sum, {}, {}, 0);
  return sum * (wide(file, names[2].name) / lengths).unsqueeze(1);
}

}  // namespace

bool AdapterToMerge::changes(const std::string& parameter) const {
  return adapted_weight(targets, parameter) != nullptr || own_value(*this, parameter) != nullptr;
}

at::Tensor AdapterToMerge::merged(const std::string& parameter, const at::Tensor& value) const {
  at::Tensor weight = value.to(at::kFloat);
  if (const shapes::SavedTensor* own = own_value(*this, parameter)) {
    weight =
        borrowed_tensor(file->at(own->key)).to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
  }
  const shapes::AdaptedModule* module = adapted_weight(targets, parameter);
  return module == nullptr ? weight : with_product(*module, *file, weight);
}

}  // namespace zeroth::models
