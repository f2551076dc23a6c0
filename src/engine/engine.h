#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "comm/make.h"
#include "engine/options.h"
#include "engine/walk.h"
#include "memory/tally.h"
#include "models/unit.h"
#include "optim/optimizer.h"
#include "zero/update_stream.h"

#include <ATen/core/Tensor.h>

namespace zeroth::engine {

// Trains a list of units: forward, backward, step, after every micro-batch. The update depends on
// which rows form the window, not on how they are cut: losses and gradients are weighted by target
// tokens over the whole window. The units must outlive the engine and belong to it alone while it
// lives.
//
// What fails on one rank ends the waits of the others, with the reason.
class Engine {
 public:
  // Every rank of `comm` makes its engine from equal units and options and then calls the same
  // functions in the same order, with rows or without. kModel for a parameter that is in two units.
  // Collective.
  Engine(models::UnitList& units,
         std::unique_ptr<optim::Optimizer> optimizer,
         const EngineOptions& options,
         std::shared_ptr<comm::Communicator> comm = comm::make_local_communicator(),
         std::shared_ptr<memory::Tally> tally = std::make_shared<memory::Tally>());

  // The next window has this many micro-steps (an epoch's last may be shorter). Before its first
  // micro-step only.
  void set_window(std::int64_t num_micro_steps);

  [[nodiscard]] Loss forward(const models::TokenBatch& batch);
  // Must follow the forward that gave `loss`. `loss.weight` enters the window's count.
  void backward(const Loss& loss);
  // Updates at the end of a window and says so.
  StepReport step();

  // Updated weights are still on their way between ranks when step() returns; each unit waits for
  // its own before it is used. This waits for all: before anybody reads a unit's tensors directly.
  void settle();

  // Whether the micro-step that is under way, or the next one, is a window's last.
  [[nodiscard]] bool is_last_micro_step() const noexcept {
    return micro_steps_done_ + 1 >= window_micro_steps_;
  }

  // Without gradients, without dropout: of this rank's rows. A rank that has none takes part all
  // the same.
  [[nodiscard]] Loss evaluate(const models::TokenBatch& batch);
  // The last unit's output without gradients: logits where the batch has no labels.
  [[nodiscard]] at::Tensor infer(const models::ForwardContext& context);

  [[nodiscard]] const std::vector<zero::UnitState>& units() const noexcept {
    return walk_->units();
  }

  // This rank's loss and those of all others, added in rank order. Collective.
  [[nodiscard]] Loss sum_over_ranks(const Loss& loss) const;

  [[nodiscard]] comm::Communicator& comm() const noexcept { return shared_->comm(); }

  // Values of a trainable parameter, whole and in fp32, under every stage; kInternal if there is no
  // such name. Reading gives copies; all ranks write the same. Collective.
  [[nodiscard]] at::Tensor parameter_value(const std::string& name) const;
  void set_parameter_value(const std::string& name, const at::Tensor& value);
  // Of the window so far, per target token, before clipping: between backward and step.
  [[nodiscard]] at::Tensor gradient_value(const std::string& name) const;
  void set_gradient_value(const std::string& name, const at::Tensor& value);
  // Moment `index` of the optimizer, of num_moments().
  [[nodiscard]] at::Tensor moment_value(const std::string& name, int index) const;
  void set_moment_value(const std::string& name, int index, const at::Tensor& value);

  [[nodiscard]] int num_moments() const noexcept { return optimizer_->num_moments(); }

  [[nodiscard]] std::int64_t num_updates() const noexcept { return num_updates_; }

  // The rate of the next update.
  [[nodiscard]] double learning_rate() const { return options_.schedule.at(num_updates_); }

  [[nodiscard]] double loss_scale() const noexcept { return scaler_ ? scaler_->scale() : 1.0; }

  // What a checkpoint keeps beside the values of the units: between updates.
  struct Position {
    std::int64_t updates = 0;
    std::int64_t attempts = 0;
    std::optional<arithmetic::LossScaler::State> scaler;  // fp16
  };

  [[nodiscard]] Position position() const;
  // A scaler's state is taken where this engine has one.
  void set_position(const Position& position);

  // For checkpoints.
  [[nodiscard]] std::vector<zero::UnitState>& units() noexcept { return walk_->units(); }

  [[nodiscard]] const memory::Tally& tally() const noexcept { return *tally_; }

  // From and to files, since the start, of this rank.
  [[nodiscard]] offload::Traffic offload_traffic() const noexcept { return shared_->traffic(); }

  // Where what rests on file is and how it moves, a line each.
  [[nodiscard]] std::vector<std::string> resting_texts() const;

 private:
  struct Place {
    zero::UnitState* unit = nullptr;
    std::size_t leaf = 0;

    [[nodiscard]] shard::Range range() const { return unit->layout().parameter(leaf); }

    // The parameter's part of the unit's flat values, in its shape.
    [[nodiscard]] at::Tensor of(const at::Tensor& flat) const;
    // The same, of values that are the parameter's alone.
    [[nodiscard]] at::Tensor shaped(const at::Tensor& values) const;
  };

  [[nodiscard]] Place find(const std::string& name) const;
  [[nodiscard]] at::Tensor flat_value(const Place& place, const at::Tensor& value) const;
  [[nodiscard]] double stored_per_target() const;
  void start_summing_losses();
  StepReport finish_window();
  void finish_reductions();
  [[nodiscard]] double gradient_norm(double scale) const;
  void decide(StepReport& report);
  [[nodiscard]] std::string where_not_finite();
  [[nodiscard]] std::string bad_parameter_of(std::size_t unit) const;
  void apply(const StepReport& report, double gradient_scale);
  void update_by_ratios(const optim::UpdateStep& update);
  [[nodiscard]] std::vector<std::vector<double>> trust_ratios(const optim::UpdateStep& update);
  void note(const char* phase) const;

  // Runs `work`; what it throws is told to the other ranks first.
  template <typename Work>
  auto told(const Work& work) const -> decltype(work());

  std::shared_ptr<memory::Tally> tally_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  EngineOptions options_;
  std::shared_ptr<zero::SharedState> shared_;
  std::unique_ptr<Walk> walk_;
  std::unique_ptr<zero::UpdateStream> updates_;
  std::optional<arithmetic::LossScaler> scaler_;  // fp16
  bool awaiting_backward_ = false;
  Loss window_loss_;
  std::array<double, 2> window_terms_{};  // the same, while it goes to the other ranks
  comm::ValuesInFlight window_losses_;
  std::optional<std::size_t> non_finite_output_;  // the first unit of this window, on this rank
  std::int64_t window_micro_steps_ = 0;
  std::int64_t micro_steps_done_ = 0;
  bool first_window_done_ = false;
  std::int64_t num_updates_ = 0;
  std::int64_t num_attempts_ = 0;
};

}  // namespace zeroth::engine
