#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "zeroth/config.h"
#include "zeroth/model.h"
#include "zeroth/runtime.h"

namespace zeroth {

// Parameters that are treated alike. Each parameter belongs to the first group that matches it, or
// to none: then it is trained as the configuration says. A group that matches nothing trainable is
// ignored with a notice.
struct ParameterGroup {
  std::vector<std::string> names;        // * stands for any characters: "*.bias", "head.*"
  std::optional<double> weight_decay{};  // in place of the configuration's
  double learning_rate_factor = 1;       // times the schedule's rate
  bool frozen = false;
};

// The loss of one micro-batch of this rank, as forward() gave it.
class StepLoss {
 public:
  StepLoss() = default;

  [[nodiscard]] double sum() const noexcept { return sum_; }

  [[nodiscard]] std::int64_t weight() const noexcept { return weight_; }

  [[nodiscard]] double mean() const noexcept {
    return weight_ == 0 ? 0.0 : sum_ / static_cast<double>(weight_);
  }

 private:
  friend class Engine;

  StepLoss(double sum, std::int64_t weight, const void* engine, std::uint64_t ticket)
      : sum_(sum), weight_(weight), engine_(engine), ticket_(ticket) {}

  double sum_ = 0;
  std::int64_t weight_ = 0;
  const void* engine_ = nullptr;
  std::uint64_t ticket_ = 0;  // which forward of that engine gave it
};

// What step() did. Everything but `window_finished` speaks of the window that this step finished,
// and is meaningful there only.
struct StepReport {
  bool window_finished = false;
  bool updated = false;       // false at a window's end: the update was skipped, see `skipped`
  std::int64_t step = 0;      // updates made so far
  std::int64_t attempts = 0;  // updates made or skipped so far
  double grad_norm = 0;       // of the whole gradient, before clipping
  double clip_factor = 1;
  double learning_rate = 0;  // that this update used
  double loss = 0;           // mean over the window, of all ranks
  std::int64_t loss_weight = 0;
  double loss_scale = 1;  // that backward used
  std::string skipped{};  // why nothing was updated; empty: it was
};

// Trains a network: forward, backward and step after every micro-batch, on every rank alike. step()
// counts micro-batches itself and updates at the accumulation boundary.
//
// A mistake in the order of calls, and a batch that is not the micro-batch in force, is an Error of
// kUsage that ends all ranks: none goes on with another run than the one asked for. After any error
// the engine is at its end.
//
// While an engine lives, the network's parameters are views of its storage: at ZeRO stages 0 to 2
// they can be read after step(), at stage 3 inside forward alone. Afterwards they own their values
// again (stage 3: read parameter() before).
class Engine {
 public:
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;
  ~Engine();

  [[nodiscard]] StepLoss forward(const Batch& batch);
  // Must follow the forward that gave `loss`.
  void backward(const StepLoss& loss);
  // After every micro-batch. Says whether this one finished the window.
  StepReport step();

  // Forward, backward and step for a whole window: as many micro-batches as the accumulation has,
  // or fewer if the last one is last_of_epoch.
  StepReport train_batch(std::span<const Batch> micro_batches);
  // The same, from where they come: until the window is full or `next` gives none.
  StepReport train_batch(const std::function<std::optional<Batch>()>& next);

  // The next window has only this many micro-batches: the last of an epoch. All ranks say the same.
  void set_window(std::int64_t num_micro_batches);

  // Whether the micro-batch under way, or the next one, is its window's last.
  [[nodiscard]] bool is_gradient_accumulation_boundary() const;

  // Without gradients and in evaluation mode; any number of rows, none too. All ranks call it
  // alike.
  [[nodiscard]] StepLoss evaluate(const Batch& batch);
  // The last unit's output, in the same way. kUsage for a network that gives its loss alone.
  [[nodiscard]] at::Tensor infer(const Batch& batch);
  // Over all ranks.
  [[nodiscard]] StepLoss sum_over_ranks(const StepLoss& loss) const;

  // What a loader has to give, and how often, for one update.
  [[nodiscard]] std::int64_t micro_batch_rows() const;
  [[nodiscard]] std::int64_t accumulation_steps() const;

  // Of the last window, before clipping; none before the first.
  [[nodiscard]] std::optional<double> global_grad_norm() const;
  [[nodiscard]] std::int64_t num_updates() const;
  [[nodiscard]] double learning_rate() const;  // of the next update
  [[nodiscard]] double loss_scale() const;
  [[nodiscard]] at::ScalarType dtype() const;  // in which the network computes

  // Names in the order of the units.
  [[nodiscard]] std::vector<std::string> parameter_names() const;
  // Whole values in fp32 under every stage: copies. Written ones are used by the next step; all
  // ranks write the same. Every rank calls these alike. kUsage for a name that is not there.
  [[nodiscard]] at::Tensor parameter(const std::string& name) const;
  void set_parameter(const std::string& name, const at::Tensor& value);
  // Of the window so far, per term of the loss, before clipping: between backward and step.
  [[nodiscard]] at::Tensor gradient(const std::string& name) const;
  void set_gradient(const std::string& name, const at::Tensor& value);
  // The optimizer's moments, from 0 on: Adam has two, SGD with momentum one.
  [[nodiscard]] at::Tensor moment(const std::string& name, int index) const;
  void set_moment(const std::string& name, int index, const at::Tensor& value);

  // What is in force, as JSON, and for people with every value's source.
  [[nodiscard]] std::string config() const;
  [[nodiscard]] std::string start_table() const;

 private:
  class Impl;
  friend Engine initialize(const Runtime&,
                           Model,
                           const Config&,
                           const std::vector<ParameterGroup>&);

  explicit Engine(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

// Makes an engine: every rank with the same model, settings and groups. Rank 0's parameters and
// buffers go to all ranks. The model's tensors belong to the engine while it lives.
[[nodiscard]] Engine initialize(const Runtime& runtime,
                                Model model,
                                const Config& config,
                                const std::vector<ParameterGroup>& groups = {});

}  // namespace zeroth
