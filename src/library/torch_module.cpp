#include "zeroth/torch_module.h"

#include <string>
#include <utility>

#include "base/error.h"
#include <fmt/format.h>

namespace zeroth {
namespace {

using ModulePtr = std::shared_ptr<torch::nn::Module>;

Unit unit_of(const torch::nn::Module& module, std::string name, const std::string& prefix) {
  Unit unit{.name = std::move(name)};
  for (const auto& entry : module.named_parameters()) {
    unit.parameters.push_back({.name = prefix + entry.key(),
                               .value = entry.value(),
                               .trainable = entry.value().requires_grad()});
  }
  unit.buffers = module.buffers();
  return unit;
}

// Evaluation mode for a while: afterwards each module is in the mode it was in.
class Modes {
 public:
  explicit Modes(ModulePtr root) : root_(std::move(root)) {}

  void operator()(bool training) {
    if (training) {
      for (const auto& [module, mode] : before_) {
        module->train(mode);
      }
      before_.clear();
      return;
    }
    // Children after their parents: train() sets a module's children as well.
    for (const auto& module : root_->modules()) {
      before_.emplace_back(module, module->is_training());
    }
    root_->eval();
  }

 private:
  ModulePtr root_;
  std::vector<std::pair<ModulePtr, bool>> before_;
};

// A stretch of a Sequential that begins with a child that has parameters.
struct Stretch {
  std::vector<torch::nn::AnyModule> children;

  at::Tensor operator()(const at::Tensor& input, const Pass& pass) {
    at::Tensor value = input.defined() ? input : first_of(pass.batch);
    for (torch::nn::AnyModule& child : children) {
      value = child.forward(value);
    }
    return value;
  }

  static at::Tensor first_of(const Batch& batch) {
    if (batch.tensors.empty()) {
      throw Error(ErrorKind::kUsage,
                  "a batch without tensors\n  The first child of a torch::nn::Sequential takes "
                  "the batch's first tensor.");
    }
    return batch.tensors.front();
  }
};

void append(Unit& unit, const Unit& more) {
  unit.parameters.insert(unit.parameters.end(), more.parameters.begin(), more.parameters.end());
  unit.buffers.insert(unit.buffers.end(), more.buffers.begin(), more.buffers.end());
}

}  // namespace

Model model_of(ModulePtr module, std::function<Loss(const Batch& batch)> loss) {
  if (module == nullptr || !loss) {
    throw Error(ErrorKind::kUsage, "model_of() needs a module and a callable that gives its loss");
  }
  Model model;
  model.units.push_back(unit_of(*module, module->name(), ""));
  model.loss = [loss = std::move(loss)](const at::Tensor& /*output*/, const Batch& batch) {
    return loss(batch);
  };
  model.set_training = Modes(std::move(module));
  return model;
}

Model model_of(torch::nn::Sequential modules,
               std::function<Loss(const at::Tensor& output, const Batch& batch)> loss) {
  if (modules.is_empty() || modules->is_empty()) {
    throw Error(ErrorKind::kUsage, "model_of() of a torch::nn::Sequential without children");
  }
  Model model{.units = {}, .loss = std::move(loss), .set_training = Modes(modules.ptr())};
  std::vector<Stretch> stretches;
  const auto children = modules->named_children();
  std::size_t index = 0;
  for (const torch::nn::AnyModule& child : *modules) {
    const std::string& name = children[index++].key();
    const Unit unit = unit_of(*child.ptr(), name, name + ".");
    const bool begins =
        stretches.empty() || (!unit.parameters.empty() && !model.units.back().parameters.empty());
    if (begins) {
      model.units.push_back(unit);
      stretches.emplace_back();
    } else {
      append(model.units.back(), unit);
    }
    stretches.back().children.push_back(child);
  }
  for (std::size_t unit = 0; unit < stretches.size(); ++unit) {
    model.units[unit].forward = std::move(stretches[unit]);
  }
  return model;
}

}  // namespace zeroth
