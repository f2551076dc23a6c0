#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "arithmetic/schedule.h"
#include "comm/make.h"
#include "memory/tally.h"
#include "models/unit.h"
#include "optim/optimizer.h"
#include "zero/unit_state.h"

#include <ATen/core/Tensor.h>

namespace zeroth::engine {

struct EngineOptions {
  int zero_stage = 0;
  std::int64_t reduce_bucket_elements = 500'000'000;  // changes no bit
  at::ScalarType dtype = at::kFloat;
  std::int64_t accumulation_steps = 1;  // micro-steps of an update
  double max_grad_norm = 1.0;           // 0: no clipping
  arithmetic::Schedule schedule;
  std::uint64_t seed = 42;  // of dropout
};

// The sum of token losses and the number of target tokens: what adds up over micro-steps and ranks.
struct Loss {
  double sum = 0;
  std::int64_t weight = 0;

  [[nodiscard]] double mean() const noexcept {
    return weight == 0 ? 0.0 : sum / static_cast<double>(weight);
  }
};

// What step() did. Everything but `updated` speaks of the finished window and is meaningful at its
// end only.
struct StepReport {
  bool window_finished = false;
  bool updated = false;       // false at a window's end: the attempt was skipped
  std::int64_t step = 0;      // updates made so far
  std::int64_t attempts = 0;  // updates made or skipped so far
  double grad_norm = 0;       // of the whole gradient, before clipping
  double clip_factor = 1;
  double learning_rate = 0;  // that this update used
  Loss loss;
};

// Trains a list of units: forward, backward, step, after every micro-batch. The update depends on
// which rows form the window, not on how they are cut: losses and gradients are weighted by target
// tokens over the whole window. The units must outlive the engine and belong to it alone while it
// lives.
class Engine {
 public:
  // Every rank of `comm` makes its engine from equal units and options and then calls the same
  // functions in the same order, with rows or without. Collective.
  Engine(models::UnitList& units,
         std::unique_ptr<optim::Optimizer> optimizer,
         const EngineOptions& options,
         std::shared_ptr<comm::Communicator> comm = comm::make_local_communicator());

  // The next window has this many micro-steps (an epoch's last may be shorter). Before its first
  // micro-step only.
  void set_window(std::int64_t num_micro_steps);

  [[nodiscard]] Loss forward(const models::TokenBatch& batch);
  // Must follow the forward that gave `loss`. `loss.weight` enters the window's count.
  void backward(const Loss& loss);
  // Updates at the end of a window and says so.
  StepReport step();

  // Without gradients, without dropout: of this rank's rows. A rank that has none takes part all
  // the same.
  [[nodiscard]] Loss evaluate(const models::TokenBatch& batch);
  // The last unit's output without gradients: logits where the batch has no labels.
  [[nodiscard]] at::Tensor infer(const models::ForwardContext& context);

  [[nodiscard]] const std::vector<zero::UnitState>& units() const noexcept { return states_; }

  // This rank's loss and those of all others, added in rank order. Collective.
  [[nodiscard]] Loss sum_over_ranks(const Loss& loss) const;

  [[nodiscard]] comm::Communicator& comm() const noexcept { return shared_->comm(); }

  // A copy of a trainable parameter's fp32 value; kInternal if there is no such name. Collective.
  [[nodiscard]] at::Tensor parameter_value(const std::string& name) const;
  // The gradient of the window so far per target token, before clipping: a copy. Collective.
  [[nodiscard]] at::Tensor gradient_value(const std::string& name) const;

  [[nodiscard]] std::int64_t num_updates() const noexcept { return num_updates_; }

  [[nodiscard]] const memory::Tally& tally() const noexcept { return *tally_; }

 private:
  // What one unit's forward leaves for its backward.
  struct Tape {
    at::Tensor input;   // detached at the unit's border
    at::Tensor output;  // with the unit's own graph
  };

  [[nodiscard]] models::ForwardContext training_context(const models::TokenBatch& batch) const;
  [[nodiscard]] at::Tensor run_unit(std::size_t index,
                                    const models::ForwardContext& context,
                                    const at::Tensor& input);
  [[nodiscard]] at::Tensor backward_unit(std::size_t index, const at::Tensor& grad_output);
  void prefetch(std::size_t index);
  void acquire(std::size_t index);
  void release(std::size_t index);
  [[nodiscard]] at::Tensor walk(const models::ForwardContext& context);
  void walk_without_rows();
  void walk_back_without_rows();
  void reduce(std::size_t index);
  void finish_reductions();
  [[nodiscard]] double gradient_norm(double scale) const;
  [[nodiscard]] std::pair<const zero::UnitState*, std::size_t> find(const std::string& name) const;
  StepReport finish_window();
  // Tells the other ranks what this one goes on to: "forward", "backward", "reduction" or "step".
  void note(const char* phase) const;
  void update_parameters(double learning_rate, double gradient_scale);

  std::shared_ptr<memory::Tally> tally_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  EngineOptions options_;
  std::shared_ptr<zero::SharedState> shared_;
  std::vector<zero::UnitState> states_;
  std::vector<std::vector<std::size_t>>
      borrowed_from_;  // per unit: the units whose parameters it reads as well
  std::vector<Tape> tape_;
  bool awaiting_backward_ = false;
  Loss window_loss_;
  std::int64_t window_micro_steps_ = 0;
  std::int64_t micro_steps_done_ = 0;
  std::int64_t num_updates_ = 0;
  std::int64_t num_attempts_ = 0;
};

}  // namespace zeroth::engine
