#include "engine/engine.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "optim/norm.h"
#include <fmt/format.h>

#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

namespace zeroth::engine {
namespace {

// Backward starts from this fraction of each loss sum, whatever the batch; step() corrects by the
// true number of targets, so nothing needs to be known in advance. A power of two changes no bit.
constexpr double kBackwardScale = 1.0 / 1024;

// Padded elements of the largest unit's trainable parameters.
std::int64_t largest_unit(const models::UnitList& units, std::int64_t num_shards) {
  std::int64_t largest = 0;
  for (const auto& unit : units) {
    std::vector<std::int64_t> numels;
    for (const models::Parameter& parameter : unit->parameters()) {
      numels.push_back(parameter.trainable ? parameter.value.numel() : 0);
    }
    largest = std::max(largest, shard::FlatLayout(numels, num_shards).padded_numel());
  }
  return largest;
}

// A leaf's part of a unit's flat values, shaped like the parameter.
at::Tensor leaf_of(const zero::UnitState& state, std::size_t leaf, const at::Tensor& flat) {
  const shard::Range range = state.layout().parameter(leaf);
  return flat.narrow(0, range.begin, range.size()).view(state.leaves()[leaf].sizes()).clone();
}

// The units that own the borrowed parameters.
std::vector<std::size_t> owners_of(const std::vector<models::Parameter*>& borrowed,
                                   const models::UnitList& units) {
  std::vector<std::size_t> owners;
  for (const models::Parameter* parameter : borrowed) {
    for (std::size_t owner = 0; owner < units.size(); ++owner) {
      const auto& parameters = units[owner]->parameters();
      if (parameter >= parameters.data() && parameter < parameters.data() + parameters.size()) {
        owners.push_back(owner);
      }
    }
  }
  return owners;
}

}  // namespace

Engine::Engine(models::UnitList& units,
               std::unique_ptr<optim::Optimizer> optimizer,
               const EngineOptions& options,
               std::shared_ptr<comm::Communicator> comm)
    : tally_(std::make_shared<memory::Tally>()),
      optimizer_(std::move(optimizer)),
      options_(options),
      window_micro_steps_(options.accumulation_steps) {
  ZEROTH_CHECK(!units.empty(), "a model without units");
  const zero::ZeroOptions zero_options{.policy = zero::policy_for(options.zero_stage),
                                       .dtype = options.dtype,
                                       .num_moments = optimizer_->num_moments(),
                                       .bucket_elements = options.reduce_bucket_elements};
  const std::int64_t largest = largest_unit(units, comm->size());
  shared_ = std::make_shared<zero::SharedState>(std::move(comm), zero_options, largest, tally_);
  states_.reserve(units.size());
  for (const auto& unit : units) {
    states_.emplace_back(*unit, shared_);
    borrowed_from_.push_back(owners_of(unit->borrowed(), units));
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
  note("forward");
  if (batch.num_targets == 0) {
    walk_without_rows();  // nothing to predict: no loss, no gradient
    return {};
  }
  const models::ForwardContext context = training_context(batch);
  at::Tensor value;
  bool differentiate = false;  // whether anything below this border is trained
  for (std::size_t index = 0; index < states_.size(); ++index) {
    Tape& tape = tape_[index];
    tape.input = value.defined() ? value.detach().requires_grad_(differentiate) : value;
    prefetch(index + 1);
    tape.output = run_unit(index, context, tape.input);
    value = tape.output;
    differentiate = value.requires_grad();
  }
  return {.sum = value.item<double>(), .weight = batch.num_targets};
}

void Engine::backward(const Loss& loss) {
  ZEROTH_CHECK(awaiting_backward_, "a backward without a forward");
  awaiting_backward_ = false;
  note("backward");
  window_loss_.sum += loss.sum;
  window_loss_.weight += loss.weight;
  if (tape_.back().output.defined()) {
    at::Tensor grad = at::full({}, kBackwardScale, at::kFloat);
    for (std::size_t index = states_.size(); index-- > 0;) {
      if (index > 0) {
        prefetch(index - 1);
      }
      if (grad.defined() && tape_[index].output.requires_grad()) {
        grad = backward_unit(index, grad);
      }
      tape_[index] = {};
      reduce(index);
    }
  } else {
    walk_back_without_rows();
  }
  states_.front().wait_gradients();
}

// A rank without rows takes part in the others' collectives.
void Engine::walk_without_rows() {
  for (std::size_t index = 0; index < states_.size(); ++index) {
    prefetch(index + 1);
    acquire(index);
    release(index);
  }
}

void Engine::walk_back_without_rows() {
  for (std::size_t index = states_.size(); index-- > 0;) {
    if (index > 0) {
      prefetch(index - 1);
    }
    acquire(index);
    release(index);
    reduce(index);
  }
}

// Starts the reduction of this unit's gradients and waits for that of the unit before, which had
// the time between.
void Engine::reduce(std::size_t index) {
  const bool reduces_now =
      shared_->options().policy.shard_gradients && !states_[index].leaves().empty();
  if (reduces_now) {
    note("reduction");
  }
  states_[index].submit_gradients();
  if (index + 1 < states_.size()) {
    states_[index + 1].wait_gradients();
  }
  if (reduces_now) {
    note("backward");
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
  note("reduction");
  const Loss loss = sum_over_ranks(window_loss_);
  StepReport report{
      .window_finished = true, .step = num_updates_, .attempts = num_attempts_, .loss = loss};
  report.learning_rate = options_.schedule.at(num_updates_);
  if (loss.weight == 0) {
    return report;
  }
  finish_reductions();
  note("step");
  const double per_target = 1.0 / (kBackwardScale * static_cast<double>(loss.weight));
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
  optim::UpdateStep update{.update = num_updates_ + 1,
                           .learning_rate = learning_rate,
                           .gradient_scale = gradient_scale};
  if (const auto betas = options_.schedule.betas_at(num_updates_)) {
    update.betas = {betas->first, betas->second};
  }
  ++num_updates_;
  for (zero::UnitState& state : states_) {
    if (!state.leaves().empty()) {
      optimizer_->update(state.shard(), update);
      state.publish();
    }
  }
}

Loss Engine::evaluate(const models::TokenBatch& batch) {
  if (batch.num_targets == 0) {
    walk_without_rows();
    return {};
  }
  const at::Tensor sum = infer({.batch = batch});
  return {.sum = sum.item<double>(), .weight = batch.num_targets};
}

at::Tensor Engine::infer(const models::ForwardContext& context) {
  const c10::NoGradGuard no_grad;
  at::Tensor value;
  for (std::size_t index = 0; index < states_.size(); ++index) {
    prefetch(index + 1);
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

void Engine::note(const char* phase) const {
  comm().note(fmt::format("{} of update {}", phase, num_updates_ + 1));
}

void Engine::prefetch(std::size_t index) {
  if (index < states_.size()) {
    states_[index].prefetch();
  }
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

void Engine::finish_reductions() {
  for (zero::UnitState& state : states_) {
    state.finish_gradients();
  }
}

// In fp64 over each shard range, then over the ranges in rank order: the same in every stage.
double Engine::gradient_norm(double scale) const {
  const auto range_sum = [this](std::int64_t rank) {
    double sum = 0;
    for (const zero::UnitState& state : states_) {
      sum += state.sum_of_squares(rank);
    }
    return sum;
  };
  std::vector<double> sums;
  if (shared_->options().policy.shard_optimizer) {
    sums = comm().gather_values("gradient norm", std::vector<double>{range_sum(comm().rank())});
  } else {
    for (std::int64_t rank = 0; rank < comm().size(); ++rank) {
      sums.push_back(range_sum(rank));
    }
  }
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0)) * scale;
}

Loss Engine::sum_over_ranks(const Loss& loss) const {
  const std::vector<double> values = comm().gather_values(
      "loss and target tokens", std::vector<double>{loss.sum, static_cast<double>(loss.weight)});
  Loss total;
  for (std::size_t rank = 0; rank < values.size() / 2; ++rank) {
    total.sum += values[2 * rank];
    total.weight += static_cast<std::int64_t>(values[2 * rank + 1]);
  }
  return total;
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
  return leaf_of(*state, leaf, state->gather_master());
}

at::Tensor Engine::gradient_value(const std::string& name) const {
  const auto [state, leaf] = find(name);
  const auto weight = static_cast<double>(sum_over_ranks(window_loss_).weight);
  return leaf_of(*state, leaf, state->gather_gradients()).mul_(1.0 / (kBackwardScale * weight));
}

}  // namespace zeroth::engine
