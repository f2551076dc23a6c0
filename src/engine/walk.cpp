#include "engine/walk.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "memory/tensor_tally.h"
#include <fmt/format.h>

#include <ATen/Context.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/full.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

namespace zeroth::engine {
namespace {

// A unit's gradients are complete when the first of the units that read its parameters has been
// differentiated.
std::vector<std::vector<std::size_t>> completions(
    const std::vector<std::vector<std::size_t>>& borrowed_from) {
  std::vector<std::size_t> first(borrowed_from.size());
  for (std::size_t unit = 0; unit < first.size(); ++unit) {
    first[unit] = unit;
  }
  for (std::size_t unit = 0; unit < first.size(); ++unit) {
    for (const std::size_t owner : borrowed_from[unit]) {
      first[owner] = std::min(first[owner], unit);
    }
  }
  std::vector<std::vector<std::size_t>> complete_at(first.size());
  for (std::size_t unit = first.size(); unit-- > 0;) {
    complete_at[first[unit]].push_back(unit);
  }
  return complete_at;
}

at::Generator generator() {
  return at::globalContext().defaultGenerator(at::kCPU);
}

// Gives the random numbers of a moment ago back to a unit that is computed once more.
class RandomReplay {
 public:
  explicit RandomReplay(const at::Tensor& state) {
    if (state.defined()) {
      now_ = generator().get_state();
      generator().set_state(state);
    }
  }

  RandomReplay(const RandomReplay&) = delete;
  RandomReplay& operator=(const RandomReplay&) = delete;

  ~RandomReplay() {
    if (now_.defined()) {
      generator().set_state(now_);
    }
  }

 private:
  at::Tensor now_;
};

}  // namespace

Walk::Walk(models::UnitList& units,
           std::shared_ptr<zero::SharedState> shared,
           std::vector<std::vector<std::size_t>> borrowed_from,
           const Options& options)
    : shared_(std::move(shared)),
      borrowed_from_(std::move(borrowed_from)),
      complete_at_(completions(borrowed_from_)),
      options_(options),
      tape_(units.size()) {
  states_.reserve(units.size());
  for (const auto& unit : units) {
    states_.emplace_back(*unit, shared_->on_file()[states_.size()], shared_);
    used_.emplace_back(states_.back().leaves().size(), false);
  }
}

models::ForwardContext Walk::context() {
  return {.batch = batch_,
          .training = true,
          .seed = options_.seed,
          .update = update_,
          .counted_targets = &counted_targets_};
}

Walk::Output Walk::forward(const models::TokenBatch& batch, std::int64_t update) {
  batch_ = batch;
  update_ = update;
  counted_targets_ = batch.num_targets;
  first_non_finite_.reset();
  note("forward");
  if (batch_.num_targets == 0) {
    pass_units(/*keep_last=*/true);  // nothing to predict: no loss, no gradient
    return {};
  }
  at::Tensor value;
  for (std::size_t index = 0; index < states_.size(); ++index) {
    tape_unit(index, value);
    value = index + 1 < states_.size() ? tape_[index + 1].input : tape_[index].output;
  }
  check_loss(value);
  const auto sum = value.item<double>();
  if (!std::isfinite(sum)) {
    find_non_finite();
  }
  return {.sum = sum, .weight = counted_targets_};
}

// Runs a unit and puts its output, cut from its graph, before the next one. The last unit is never
// recomputed, since its backward comes at once; it stays gathered for that.
void Walk::tape_unit(std::size_t index, const at::Tensor& input) {
  const bool last = index + 1 == states_.size();
  Tape& tape = tape_[index];
  tape.input = input;
  prefetch(index, Direction::kForward);
  acquire(index);
  const bool recompute = options_.recompute && !last;
  if (recompute && states_[index].unit().draws_random_numbers()) {
    tape.random_state = generator().get_state();
  }
  at::Tensor output;
  {
    const memory::TensorScope counted(shared_->tally(), purpose_of(index));
    const c10::AutoGradMode grad_mode(!recompute);
    output = states_[index].unit().forward(context(), input);
  }
  if (last) {
    tape.output = output;
    return;
  }
  release(index);
  if (!recompute) {
    require_connected(index, output);
  }
  const auto& lenders = borrowed_from_[index];
  const bool trains_here =
      states_[index].trains() || std::any_of(lenders.begin(), lenders.end(), [this](std::size_t u) {
        return states_[u].trains();
      });
  const bool differentiable = recompute
                                  ? (trains_here || (input.defined() && input.requires_grad()))
                                  : output.requires_grad();
  tape.output = recompute ? at::Tensor() : output;
  tape_[index + 1].input =
      output.detach().requires_grad_(differentiable && output.is_floating_point());
}

void Walk::backward(double scale, bool last_of_window) {
  note("backward");
  const bool computes = tape_.back().output.defined();
  at::Tensor grad;
  if (computes) {
    grad = at::full({}, scale, tape_.back().output.options().requires_grad(false))
               .reshape(tape_.back().output.sizes());
  }
  for (std::size_t index = states_.size(); index-- > 0;) {
    prefetch(index, Direction::kBackward);
    if (index + 1 < states_.size()) {
      acquire(index);
    }
    if (grad.defined()) {
      const memory::TensorScope counted(shared_->tally(), purpose_of(index));
      grad = differentiate(index, grad);
    }
    release(index);
    tape_[index] = {};
    if (computes) {
      note_unused(index);
    }
    reduce(index, last_of_window);
  }
  if (shared_->options().policy.reduce_every_micro_step) {
    wait_for_reductions();
  }
  batch_ = {};
  refuse_unused();
}

at::Tensor Walk::recomputed(std::size_t index) {
  const RandomReplay replay(tape_[index].random_state);
  return states_[index].unit().forward(context(), tape_[index].input);
}

// Differentiates one unit by itself: gradients of its own and borrowed parameters are added where
// they are owned, the gradient of its input is returned (undefined where nothing below is trained).
at::Tensor Walk::differentiate(std::size_t index, const at::Tensor& grad_output) {
  Tape& tape = tape_[index];
  const at::Tensor output = tape.output.defined() ? std::move(tape.output) : recomputed(index);
  require_connected(index, output);
  if (!output.requires_grad()) {
    return {};
  }
  if (options_.checks_graphs) {
    require_own_leaves(index, output);
  }
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
  if (inputs.empty()) {
    return {};
  }
  const auto grads = torch::autograd::grad({output},
                                           inputs,
                                           {grad_output},
                                           c10::nullopt,
                                           /*create_graph=*/false,
                                           /*allow_unused=*/true);
  std::size_t next = 0;
  for (const std::size_t owner : owners) {
    for (std::size_t leaf = 0; leaf < states_[owner].leaves().size(); ++leaf) {
      states_[owner].gradients().add(leaf, grads[next++]);
    }
  }
  return wants_input ? grads.back() : at::Tensor();
}

at::Tensor Walk::infer(const models::ForwardContext& context) {
  const c10::NoGradGuard no_grad;
  at::Tensor value;
  for (std::size_t index = 0; index < states_.size(); ++index) {
    prefetch(index, Direction::kForward);
    value = run_unit(index, context, value);
  }
  return value;
}

at::Tensor Walk::run_unit(std::size_t index,
                          const models::ForwardContext& context,
                          const at::Tensor& input) {
  acquire(index);
  const memory::TensorScope counted(shared_->tally(), purpose_of(index));
  at::Tensor output = states_[index].unit().forward(context, input);
  release(index);
  return output;
}

void Walk::infer_without_rows() {
  pass_units(/*keep_last=*/false);
}

void Walk::pass_units(bool keep_last) {
  for (std::size_t index = 0; index < states_.size(); ++index) {
    prefetch(index, Direction::kForward);
    acquire(index);
    if (index + 1 < states_.size() || !keep_last) {
      release(index);
    }
  }
}

// Starts the reductions of what is complete now and waits for those before, which had the time
// between.
void Walk::reduce(std::size_t index, bool last_of_window) {
  std::vector<std::size_t> started;
  for (const std::size_t unit : complete_at_[index]) {
    if (states_[unit].trains()) {
      started.push_back(unit);
    }
  }
  const bool reduces =
      !started.empty() && (last_of_window || shared_->options().policy.reduce_every_micro_step);
  if (reduces) {
    note("reduction");
  }
  for (const std::size_t unit : started) {
    states_[unit].gradients().submit(last_of_window);
  }
  wait_for_reductions();
  reducing_ = std::move(started);
  if (reduces) {
    note("backward");
  }
}

void Walk::wait_for_reductions() {
  for (const std::size_t unit : reducing_) {
    states_[unit].gradients().wait();
  }
  reducing_.clear();
}

// The unit itself if it is not on its way yet, then those that come after it in this direction.
void Walk::prefetch(std::size_t index, Direction direction) {
  if (!shared_->options().policy.shard_parameters) {
    return;
  }
  const zero::ZeroOptions& options = shared_->options();
  const std::int64_t limit = options.prefetch_elements.value_or(0);
  states_[index].prefetch();
  std::int64_t ahead = 0;
  std::size_t next = index;
  for (std::int64_t count = 0; count < shared_->prefetch_depth(); ++count) {
    if (direction == Direction::kForward ? next + 1 == states_.size() : next == 0) {
      return;
    }
    next += direction == Direction::kForward ? 1 : std::size_t(-1);
    const std::int64_t elements = states_[next].layout().padded_numel();
    ahead += elements;
    const bool gathers = states_[next].gathers();
    if ((count > 0 && ahead > limit) ||
        (gathers && shared_->live_elements() + elements > options.max_live_elements)) {
      return;
    }
    states_[next].prefetch();
  }
}

void Walk::acquire(std::size_t index) {
  states_[index].acquire();
  for (const std::size_t owner : borrowed_from_[index]) {
    states_[owner].acquire();
  }
}

void Walk::release(std::size_t index) {
  states_[index].release();
  for (const std::size_t owner : borrowed_from_[index]) {
    states_[owner].release();
  }
}

memory::Purpose Walk::purpose_of(std::size_t index) const noexcept {
  return index + 1 == states_.size() && states_.size() > 1 ? memory::Purpose::kLogits
                                                           : memory::Purpose::kActivations;
}

// Tells the other ranks what this one goes on to.
void Walk::note(const char* phase) const {
  shared_->comm().note(fmt::format("{} of update {}", phase, update_ + 1));
}

}  // namespace zeroth::engine
