// What is looked at on the way: losses that are none, numbers that are not finite, parameters that
// got no gradient.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "engine/walk.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ATen/ops/isfinite.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

namespace zeroth::engine {
namespace {

// The tensors that a backward from `output` would end at.
std::vector<at::Tensor> leaves_of(const at::Tensor& output) {
  std::vector<at::Tensor> leaves;
  std::vector<torch::autograd::Node*> open{output.grad_fn().get()};
  std::set<const torch::autograd::Node*> seen{open.front()};
  while (!open.empty()) {
    torch::autograd::Node* const node = open.back();
    open.pop_back();
    if (const auto* end = dynamic_cast<const torch::autograd::AccumulateGrad*>(node)) {
      leaves.push_back(end->variable);
    }
    for (const torch::autograd::Edge& edge : node->next_edges()) {
      if (edge.function != nullptr && seen.insert(edge.function.get()).second) {
        open.push_back(edge.function.get());
      }
    }
  }
  return leaves;
}

bool all_finite(const at::Tensor& x) {
  return !x.defined() || !x.is_floating_point() || at::isfinite(x).all().item<bool>();
}

}  // namespace

void Walk::find_non_finite() {
  first_non_finite_ = states_.size() - 1;
  for (std::size_t index = 1; index < tape_.size(); ++index) {
    if (!all_finite(tape_[index].input)) {
      first_non_finite_ = index - 1;
      return;
    }
  }
}

void Walk::note_unused(std::size_t index) {
  for (const std::size_t unit : complete_at_[index]) {
    for (std::size_t leaf = 0; leaf < states_[unit].leaves().size(); ++leaf) {
      if (states_[unit].gradients().got(leaf)) {
        used_[unit][leaf] = true;
      } else if (options_.unused == UnusedParameters::kRefused) {
        unused_.push_back(states_[unit].trainable()[leaf]->name);
      }
    }
  }
}

void Walk::require_all_used() const {
  if (options_.unused == UnusedParameters::kAllowed) {
    return;
  }
  std::vector<double> mine;
  std::vector<std::string> names;
  for (std::size_t unit = 0; unit < states_.size(); ++unit) {
    for (std::size_t leaf = 0; leaf < used_[unit].size(); ++leaf) {
      mine.push_back(used_[unit][leaf] ? 1 : 0);
      names.push_back(states_[unit].trainable()[leaf]->name);
    }
  }
  const std::vector<double> all = shared_->comm().gather_values("parameters in use", mine);
  std::vector<std::string> unused;
  for (std::size_t index = 0; index < names.size(); ++index) {
    double ranks = 0;
    for (std::size_t at = index; at < all.size(); at += names.size()) {
      ranks += all[at];
    }
    if (ranks == 0) {
      unused.push_back(names[index]);
    }
  }
  if (!unused.empty()) {
    throw Error(ErrorKind::kModel,
                fmt::format("no gradient reached {} in the first update, on any rank\n  Use every "
                            "trainable parameter, freeze those that are not used, or say that it "
                            "is meant: ignore_unused_parameters true in zero_optimization.",
                            fmt::join(unused, ", ")));
  }
}

// A unit whose output does not depend on an input that is being trained cuts off all units before.
void Walk::require_connected(std::size_t index, const at::Tensor& output) const {
  const at::Tensor& input = tape_[index].input;
  const bool cut = input.defined() && input.requires_grad() && !output.requires_grad();
  if (cut && options_.unused != UnusedParameters::kAllowed) {
    throw Error(ErrorKind::kModel,
                fmt::format("unit {} gave an output without a gradient, so none reaches the units "
                            "before it\n  Compute it from the input, without detach() and outside "
                            "NoGradGuard. If it is meant: ignore_unused_parameters true in "
                            "zero_optimization.",
                            states_[index].unit().name()));
  }
}

// Derivatives are taken by the unit's own and borrowed parameters: one by any other tensor would be
// lost without a word.
void Walk::require_own_leaves(std::size_t index, const at::Tensor& output) const {
  std::set<const void*> known{tape_[index].input.unsafeGetTensorImpl()};
  const auto add_leaves_of = [&](std::size_t unit) {
    for (const at::Tensor& leaf : states_[unit].leaves()) {
      known.insert(leaf.unsafeGetTensorImpl());
    }
  };
  add_leaves_of(index);
  for (const std::size_t owner : borrowed_from_[index]) {
    add_leaves_of(owner);
  }
  for (const at::Tensor& leaf : leaves_of(output)) {
    if (!known.contains(leaf.unsafeGetTensorImpl())) {
      refuse_leaf(index, leaf);
    }
  }
}

void Walk::refuse_leaf(std::size_t index, const at::Tensor& leaf) const {
  const std::string& reader = states_[index].unit().name();
  const std::string place = index + 1 == states_.size() ? " (or the loss)" : "";
  for (const zero::UnitState& owner : states_) {
    for (std::size_t i = 0; i < owner.leaves().size(); ++i) {
      if (owner.leaves()[i].is_same(leaf)) {
        throw Error(ErrorKind::kModel,
                    fmt::format("unit {}{} reads parameter {} of unit {}\n  List it in "
                                "Unit::borrows of the reader: it is then gathered there too, and "
                                "its gradient is the sum of both.",
                                reader,
                                place,
                                owner.trainable()[i]->name,
                                owner.unit().name()));
      }
    }
  }
  throw Error(ErrorKind::kModel,
              fmt::format("unit {}{} reads a tensor of shape [{}] that requires a gradient and is "
                          "no parameter of the model\n  List it in Unit::parameters, or detach() "
                          "it.",
                          reader,
                          place,
                          fmt::join(leaf.sizes(), ", ")));
}

void Walk::refuse_unused() const {
  if (unused_.empty()) {
    return;
  }
  throw Error(ErrorKind::kConfig,
              fmt::format("no gradient reached {} in this micro-step, and "
                          "ignore_unused_parameters is false\n  Use every trainable parameter in "
                          "each forward, freeze those that are not used, or set "
                          "ignore_unused_parameters to true.",
                          fmt::join(unused_, ", ")));
}

void Walk::check_loss(const at::Tensor& loss) const {
  const std::string& name = states_.back().unit().name();
  if (!loss.defined() || loss.numel() != 1) {
    throw Error(ErrorKind::kModel,
                fmt::format("unit {} gave {} where a loss sum, one number, is needed",
                            name,
                            loss.defined() ? fmt::format("{} numbers", loss.numel()) : "nothing"));
  }
  const bool anything_trains =
      std::any_of(states_.begin(), states_.end(), [](const auto& state) { return state.trains(); });
  if (anything_trains && !loss.requires_grad()) {
    throw Error(ErrorKind::kModel,
                fmt::format("the loss that unit {} gave depends on no trainable parameter: it has "
                            "no gradient\n  Compute it from the parameters, without detach() and "
                            "outside NoGradGuard.",
                            name));
  }
}

}  // namespace zeroth::engine
