#pragma once

#include <functional>
#include <memory>

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/pimpl.h>

#include "zeroth/model.h"

// torch::nn as models. The only header that needs it.
namespace zeroth {

// Any module, as one unit: `loss` calls it as it likes. A parameter that the module holds under
// several names counts once.
[[nodiscard]] Model model_of(std::shared_ptr<torch::nn::Module> module,
                             std::function<Loss(const Batch& batch)> loss);

template <typename Contained>
[[nodiscard]] Model model_of(const torch::nn::ModuleHolder<Contained>& module,
                             std::function<Loss(const Batch& batch)> loss) {
  return model_of(std::shared_ptr<torch::nn::Module>(module.ptr()), std::move(loss));
}

// A chain, each child with parameters a unit; children without join the one before them. The first
// child takes the batch's first tensor, each other one the output before it.
[[nodiscard]] Model model_of(
    torch::nn::Sequential modules,
    std::function<Loss(const at::Tensor& output, const Batch& batch)> loss);

}  // namespace zeroth
