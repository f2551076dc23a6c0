#include "engine/engine.h"

#include <cmath>
#include <utility>

#include "base/check.h"
#include "optim/norm.h"

#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

namespace zeroth::engine {
namespace {

// Backward starts from this fraction of each loss sum, whatever the batch; step() corrects by the
// true number of targets, so nothing needs to be known in advance. A power of two changes no bit.
constexpr double kBackwardScale = 1.0 / 1024;

}  // namespace

Engine::Engine(models::UnitList& units,
               std::unique_ptr<optim::Optimizer> optimizer,
               const EngineOptions& options)
    : tally_(std::make_shared<memory::Tally>()),
      optimizer_(std::move(optimizer)),
      options_(options),
      window_micro_steps_(options.accumulation_steps) {
  ZEROTH_CHECK(!units.empty(), "a model without units");
  const zero::UnitStateOptions unit_options{.dtype = options.dtype,
                                            .num_moments = optimizer_->num_moments()};
  for (const auto& unit : units) {
    states_.emplace_back(*unit, unit_options, tally_);
  }
  for (const auto& unit : units) {
    std::vector<std::size_t>& owners = borrowed_from_.emplace_back();
    for (const models::Parameter* parameter : unit->borrowed()) {
      for (std::size_t owner = 0; owner < units.size(); ++owner) {
        const auto& parameters = units[owner]->parameters();
        if (parameter >= parameters.data() && parameter < parameters.data() + parameters.size()) {
          owners.push_back(owner);
        }
      }
    }
  }
  tape_.resize(states_.size());
}

void Engine::set_window(std::int64_t num_micro_steps) {
  ZEROTH_CHECK(micro_steps_done_ == 0, "a window's length changes after its first micro-step");
  ZEROTH_CHECK(num_micro_steps >= 1, "a window of {} micro-steps", num_micro_steps);
  window_micro_steps_ = num_micro_steps;
}

Loss Engine::forward(const models::TokenBatch& batch) {
  ZEROTH_CHECK(!awaiting_backward_, "two forwards without a backward between them");
  awaiting_backward_ = true;
  if (batch.num_targets == 0) {
    return {};  // nothing to predict: no loss, no gradient
  }
  const models::ForwardContext context = training_context(batch);
  at::Tensor value;
  bool differentiate = false;  // whether anything below this border is trained
  for (std::size_t index = 0; index < states_.size(); ++index) {
    Tape& tape = tape_[index];
    tape.input = value.defined() ? value.detach().requires_grad_(differentiate) : value;
    tape.output = run_unit(index, context, tape.input);
    value = tape.output;
    differentiate = value.requires_grad();
  }
  return {.sum = value.item<double>(), .weight = batch.num_targets};
}

void Engine::backward(const Loss& loss) {
  ZEROTH_CHECK(awaiting_backward_, "a backward without a forward");
  awaiting_backward_ = false;
  window_loss_.sum += loss.sum;
  window_loss_.weight += loss.weight;
  if (loss.weight == 0) {
    return;
  }
  at::Tensor grad = at::full({}, kBackwardScale, at::kFloat);
  for (std::size_t index = states_.size(); index-- > 0;) {
    if (grad.defined() && tape_[index].output.requires_grad()) {
      grad = backward_unit(index, grad);
    }
    tape_[index] = {};
  }
}

StepReport Engine::step() {
  ZEROTH_CHECK(!awaiting_backward_, "a step between forward and backward");
  if (++micro_steps_done_ < window_micro_steps_) {
    return {.step = num_updates_, .attempts = num_attempts_};
  }
  const StepReport report = finish_window();
  for (zero::UnitState& state : states_) {
    state.clear_gradients();
  }
  window_loss_ = {};
  micro_steps_done_ = 0;
  window_micro_steps_ = options_.accumulation_steps;
  return report;
}

StepReport Engine::finish_window() {
  ++num_attempts_;
  StepReport report{.window_finished = true,
                    .step = num_updates_,
                    .attempts = num_attempts_,
                    .loss = window_loss_};
  report.learning_rate = options_.schedule.at(num_updates_);
  if (window_loss_.weight == 0) {
    return report;
  }
  const double per_target = 1.0 / (kBackwardScale * static_cast<double>(window_loss_.weight));
  report.grad_norm = gradient_norm(per_target);
  if (!std::isfinite(report.grad_norm)) {
    return report;
  }
  report.clip_factor = optim::clip_factor(report.grad_norm, options_.max_grad_norm);
  update_parameters(report.learning_rate, per_target * report.clip_factor);
  report.updated = true;
  report.step = num_updates_;
  return report;
}

void Engine::update_parameters(double learning_rate, double gradient_scale) {
  ++num_updates_;
  const optim::UpdateStep update{
      .update = num_updates_, .learning_rate = learning_rate, .gradient_scale = gradient_scale};
  for (zero::UnitState& state : states_) {
    if (!state.leaves().empty()) {
      optimizer_->update(state.shard(), update);
      state.publish();
    }
  }
}

Loss Engine::evaluate(const models::TokenBatch& batch) {
  if (batch.num_targets == 0) {
    return {};
  }
  const at::Tensor sum = infer({.batch = batch});
  return {.sum = sum.item<double>(), .weight = batch.num_targets};
}

at::Tensor Engine::infer(const models::ForwardContext& context) {
  const c10::NoGradGuard no_grad;
  at::Tensor value;
  for (std::size_t index = 0; index < states_.size(); ++index) {
    value = run_unit(index, context, value);
  }
  return value;
}

models::ForwardContext Engine::training_context(const models::TokenBatch& batch) const {
  return {.batch = batch, .training = true, .seed = options_.seed, .update = num_updates_};
}

at::Tensor Engine::run_unit(std::size_t index,
                            const models::ForwardContext& context,
                            const at::Tensor& input) {
  acquire(index);
  at::Tensor output = states_[index].unit().forward(context, input);
  release(index);
  return output;
}

// Differentiates one unit by itself: gradients of its own and borrowed parameters are accumulated
// where they are owned, the gradient of its input is returned (undefined where nothing below is
// trained).
at::Tensor Engine::backward_unit(std::size_t index, const at::Tensor& grad_output) {
  acquire(index);
  const Tape& tape = tape_[index];
  std::vector<std::size_t> owners{index};
  owners.insert(owners.end(), borrowed_from_[index].begin(), borrowed_from_[index].end());
  std::vector<at::Tensor> inputs;
  for (const std::size_t owner : owners) {
    const auto& leaves = states_[owner].leaves();
    inputs.insert(inputs.end(), leaves.begin(), leaves.end());
  }
  const bool wants_input = tape.input.defined() && tape.input.requires_grad();
  if (wants_input) {
    inputs.push_back(tape.input);
  }
  const auto grads = torch::autograd::grad({tape.output},
                                           inputs,
                                           {grad_output},
                                           c10::nullopt,
                                           /*create_graph=*/false,
                                           /*allow_unused=*/true);
  std::size_t next = 0;
  for (const std::size_t owner : owners) {
    for (std::size_t leaf = 0; leaf < states_[owner].leaves().size(); ++leaf) {
      states_[owner].accumulate(leaf, grads[next++]);
    }
  }
  release(index);
  return wants_input ? grads.back() : at::Tensor();
}

void Engine::acquire(std::size_t index) {
  states_[index].acquire();
  for (const std::size_t owner : borrowed_from_[index]) {
    states_[owner].acquire();
  }
}

void Engine::release(std::size_t index) {
  states_[index].release();
  for (const std::size_t owner : borrowed_from_[index]) {
    states_[owner].release();
  }
}

double Engine::gradient_norm(double scale) const {
  double sum = 0;
  for (const zero::UnitState& state : states_) {
    sum += optim::sum_of_squares(state.gradients());
  }
  return std::sqrt(sum) * scale;
}

std::pair<const zero::UnitState*, std::size_t> Engine::find(const std::string& name) const {
  for (const zero::UnitState& state : states_) {
    std::size_t leaf = 0;
    for (const models::Parameter& parameter : state.unit().parameters()) {
      if (parameter.name == name && parameter.trainable) {
        return {&state, leaf};
      }
      leaf += parameter.trainable ? 1 : 0;
    }
  }
  ZEROTH_CHECK(false, "no trainable parameter is named {}", name);
  return {};
}

at::Tensor Engine::parameter_value(const std::string& name) const {
  const auto [state, leaf] = find(name);
  return state->master_value(leaf);
}

at::Tensor Engine::gradient_value(const std::string& name) const {
  const auto [state, leaf] = find(name);
  const double weight = static_cast<double>(window_loss_.weight);
  return state->gradient_value(leaf).mul_(1.0 / (kBackwardScale * weight));
}

}  // namespace zeroth::engine
