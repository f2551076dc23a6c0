#pragma once

#include <memory>
#include <string>

#include "formats/safetensors.h"
#include "shapes/lora.h"

#include <ATen/core/Tensor.h>

// An adapter's part in the base's own weights.
namespace zeroth::models {

struct AdapterToMerge {
  shapes::LoraTargets targets;  // of the adapter on the model, checked by shapes::check_adapter
  std::shared_ptr<const formats::TensorFile> file;

  // Whether merging changes this parameter of the base.
  [[nodiscard]] bool changes(const std::string& parameter) const;
  // `value` with the adapter in it, in fp32: W + scale * B A, with its rows brought to DoRA's
  // lengths; or what the adapter has trained in the parameter's place. Rounded by whoever stores
  // it, once.
  [[nodiscard]] at::Tensor merged(const std::string& parameter, const at::Tensor& value) const;
};

}  // namespace zeroth::models
