#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/run_config.h"
#include "engine/engine.h"
#include "library/model_check.h"
#include "library/parameter_groups.h"
#include "library/tensor_error.h"
#include "library/unit_adapter.h"
#include "train/skip_watch.h"

#include "zeroth/engine.h"

namespace zeroth {

// The engine behind the face, and the guard before it: the order of calls and the rows of every
// micro-batch. What is wrong on one rank ends all.
class Engine::Impl {
 public:
  Impl(const Runtime& runtime,
       Model model,
       config::RunConfig config,
       const std::vector<ParameterGroup>& groups);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;
  // The parameters own their values again.
  ~Impl();

  [[nodiscard]] StepLoss forward(const Batch& batch);
  void backward(const StepLoss& loss);
  StepReport step();
  StepReport train_batch(std::span<const Batch> micro_batches);
  void set_window(std::int64_t num_micro_batches);
  [[nodiscard]] StepLoss evaluate(const Batch& batch);
  [[nodiscard]] at::Tensor infer(const Batch& batch);
  [[nodiscard]] StepLoss sum_over_ranks(const StepLoss& loss);

  [[nodiscard]] at::Tensor parameter(const std::string& name);
  void set_parameter(const std::string& name, const at::Tensor& value);
  [[nodiscard]] at::Tensor gradient(const std::string& name);
  void set_gradient(const std::string& name, const at::Tensor& value);
  [[nodiscard]] at::Tensor moment(const std::string& name, int index);
  void set_moment(const std::string& name, int index, const at::Tensor& value);
  [[nodiscard]] std::vector<std::string> parameter_names() const;

  [[nodiscard]] const engine::Engine& engine() const noexcept { return *engine_; }

  [[nodiscard]] const config::RunConfig& config() const noexcept { return config_; }

  [[nodiscard]] std::optional<double> grad_norm() const noexcept { return grad_norm_; }

  [[nodiscard]] at::ScalarType dtype() const noexcept { return dtype_; }

  [[nodiscard]] std::string start_table() const;

 private:
  // Where the micro-step under way stands.
  enum class Phase { kReady, kForwarded, kBackwarded };

  void make_units(Model model);
  void make_engine();
  void require_same_settings() const;

  void require_forward_now() const;
  void require_backward_now(const StepLoss& loss) const;
  void require_step_now() const;
  void require_whole_window(std::span<const Batch> micro_batches) const;
  [[nodiscard]] std::string counting_advice() const;

  [[nodiscard]] models::TokenBatch begin_pass(const Batch& batch, bool wants_output);
  [[nodiscard]] StepReport reported(const engine::StepReport& report) const;
  void evaluating(bool on);

  [[nodiscard]] models::Parameter& find(const std::string& name);
  [[nodiscard]] models::Parameter& find_trainable(const std::string& name);
  void require_gradients() const;
  void require_moment(int index) const;

  void require_alive() const;
  void end(const std::string& reason) noexcept;

  // Runs `work`. What it throws ends the other ranks and this engine.
  template <typename Work>
  auto guarded(const Work& work) -> decltype(work());

  Runtime runtime_;
  config::RunConfig config_;
  train::SkipWatch skip_watch_;
  library::Aliases aliases_;
  std::shared_ptr<library::PassState> pass_;
  std::function<void(bool)> set_training_;
  models::UnitList units_;
  bool gives_output_ = false;  // the last unit has an output besides the loss
  library::GroupsInForce groups_;
  at::ScalarType dtype_ = at::kFloat;
  std::unique_ptr<engine::Engine> engine_;
  Phase phase_ = Phase::kReady;
  std::uint64_t ticket_ = 0;
  std::optional<double> grad_norm_;
  std::string ended_;  // why this engine is at its end
};

template <typename Work>
auto Engine::Impl::guarded(const Work& work) -> decltype(work()) {
  require_alive();
  try {
    return work();
  } catch (const c10::Error& error) {
    end(error.what_without_backtrace());
    throw library::as_error(error);
  } catch (const std::exception& error) {
    end(error.what());
    throw;
  } catch (...) {
    end("something was thrown that is no std::exception");
    throw;
  }
}

}  // namespace zeroth
