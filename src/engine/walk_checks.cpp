// What is looked at on the way: losses that are none, numbers that are not finite, parameters that
// got no gradient.
#include <algorithm>

#include "base/error.h"
#include "engine/walk.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <ATen/ops/isfinite.h>

namespace zeroth::engine {
namespace {

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
  if (options_.ignore_unused) {
    return;
  }
  for (const std::size_t unit : complete_at_[index]) {
    for (std::size_t leaf = 0; leaf < states_[unit].leaves().size(); ++leaf) {
      if (!states_[unit].gradients().got(leaf)) {
        unused_.push_back(states_[unit].trainable()[leaf]->name);
      }
    }
  }
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
