#pragma once

#include <utility>

#include "kernels/packed_weight.h"

#include <torch/csrc/autograd/custom_function.h>

// A packed weight that lives as long as the graph which reads it once more.
namespace zeroth::kernels {

struct KeptWeight : torch::CustomClassHolder {
  explicit KeptWeight(PackedPtr weight) : packed(std::move(weight)) {}

  PackedPtr packed;
};

inline void keep_packed(torch::autograd::AutogradContext& context, const PackedPtr& packed) {
  if (packed != nullptr) {
    context.saved_data["packed"] =
        c10::IValue::make_capsule(c10::make_intrusive<KeptWeight>(packed));
  }
}

[[nodiscard]] inline PackedPtr kept_packed(torch::autograd::AutogradContext& context) {
  const auto found = context.saved_data.find("packed");
  return found == context.saved_data.end()
             ? nullptr
             : c10::static_intrusive_pointer_cast<KeptWeight>(found->second.toCapsule())->packed;
}

}  // namespace zeroth::kernels
