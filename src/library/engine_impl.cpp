#include "library/engine_impl.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "config/report.h"
#include "config/schedule_rules.h"
#include "library/micro_batch.h"
#include "library/runtime_state.h"
#include "library/same_start.h"
#include "train/engine_options.h"
#include <fmt/format.h>

#include <ATen/ops/empty.h>

namespace zeroth {

using library::UnitAdapter;

namespace {

// Gathers come and go with units: a model of one is gathered whole.
constexpr auto kOneUnitNotice =
    "ZeRO stage 3 with a single unit gathers the whole model for every micro-batch: give a list of "
    "units or a torch::nn::Sequential";

// Back into memory of its own. At stage 3 there is nothing to take it from.
void own_again(models::Parameter& parameter) {
  const bool there = parameter.value.storage().data() != nullptr;
  parameter.value.set_data(there ? parameter.value.detach().clone()
                                 : at::empty({0}, parameter.value.options()));
}

}  // namespace

Engine::Impl::Impl(const Runtime& runtime,
                   Model model,
                   config::RunConfig config,
                   const std::vector<ParameterGroup>& groups)
    : runtime_(runtime),
      config_(std::move(config)),
      skip_watch_(config_),
      pass_(std::make_shared<library::PassState>()),
      set_training_(std::move(model.set_training)) {
  pass_->rank = runtime_.rank();
  guarded([&] {
    aliases_ = library::checked(model);
    library::start_alike(*RuntimeAccess::comm(runtime_), model);
    make_units(std::move(model));
    groups_ = library::apply_groups(groups, units_);
    require_same_settings();
    make_engine();
  });
}

Engine::Impl::~Impl() {
  for (const auto& unit : units_) {
    for (models::Parameter& parameter : unit->parameters()) {
      if (engine_ != nullptr && parameter.trainable) {
        try {
          own_again(parameter);
        } catch (const std::exception& error) {
          log::error(fmt::format("parameter {} is lost: {}", parameter.name, error.what()));
        }
      }
    }
  }
}

void Engine::Impl::make_units(Model model) {
  gives_output_ = static_cast<bool>(model.units.back().forward);
  const std::size_t count = model.units.size();
  for (std::size_t index = 0; index < count; ++index) {
    units_.push_back(std::make_unique<UnitAdapter>(
        std::move(model.units[index]),
        static_cast<std::int64_t>(index),
        index + 1 == count ? std::move(model.loss) : UnitAdapter::LossOf(),
        pass_));
  }
  for (const auto& unit : units_) {
    auto& adapter = static_cast<UnitAdapter&>(*unit);
    for (const std::string& name : adapter.described().borrows) {
      adapter.borrow(find(name));
    }
  }
}

// Ranks that count differently would train on something that nobody asked for.
void Engine::Impl::require_same_settings() const {
  comm::Communicator& comm = *RuntimeAccess::comm(runtime_);
  const std::string text = start_table() + config::effective_config(config_).dump();
  constexpr int kUnusedBits = 64 - 53;  // a double holds the rest exactly
  const std::vector<double> mine{
      static_cast<double>(std::hash<std::string>{}(text) >> kUnusedBits)};
  const std::vector<double> all = comm.gather_values("fingerprint of the settings", mine);
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0]) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("the settings of rank {} are not those of rank 0\n  Every rank gives "
                              "initialize() the same files, values and parameter groups.",
                              rank));
    }
  }
}

void Engine::Impl::make_engine() {
  const std::int64_t total = std::max<std::int64_t>(config_.schedule.max_steps, 0);
  engine::EngineOptions options =
      train::engine_options(config_, config::schedule_of(config_, total));
  options.checks_graphs = true;
  options.gradient_divisor = 1;  // a loss may be of any size: the loss scale alone fits it to fp16
  dtype_ = options.dtype;
  pass_->gathers = options.zero_stage == 3 && runtime_.size() > 1;
  for (const auto& unit : units_) {
    for (models::Parameter& parameter : unit->parameters()) {
      if (!parameter.trainable) {
        parameter.value.requires_grad_(false);
        if (parameter.value.is_floating_point()) {
          parameter.value.set_data(parameter.value.detach().to(dtype_));
        }
      }
    }
  }
  if (options.zero_stage == 3 && units_.size() == 1) {
    groups_.notices.emplace_back(kOneUnitNotice);
  }
  engine_ = std::make_unique<engine::Engine>(
      units_, train::make_optimizer(config_.optimizer), options, RuntimeAccess::comm(runtime_));
  engine_->settle();
  for (const std::string& notice : groups_.notices) {
    log::info("notice: " + notice);
  }
}

void Engine::Impl::require_alive() const {
  if (!ended_.empty()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("this engine is at its end, because of an earlier error: {}\n  Make "
                            "the program end, or its ranks would no longer agree.",
                            ended_));
  }
}

void Engine::Impl::end(const std::string& reason) noexcept {
  ended_ = reason;
  RuntimeAccess::comm(runtime_)->abort(reason);
}

models::TokenBatch Engine::Impl::begin_pass(const Batch& batch, bool wants_output) {
  pass_->batch = batch;
  pass_->batch.rows = library::rows_of(batch);  // as callables see it
  pass_->wants_output = wants_output;
  // The engine only asks whether there is anything to compute; the loss tells its own weight.
  return {.num_targets = pass_->batch.rows > 0 ? 1 : 0};
}

StepLoss Engine::Impl::forward(const Batch& batch) {
  return guarded([&]() -> StepLoss {
    require_forward_now();
    library::require_rows(batch, runtime_.rank(), config_);
    const engine::Loss loss = engine_->forward(begin_pass(batch, /*wants_output=*/false));
    phase_ = Phase::kForwarded;
    return {loss.sum, loss.weight, this, ++ticket_};
  });
}

void Engine::Impl::backward(const StepLoss& loss) {
  guarded([&] {
    require_backward_now(loss);
    engine_->backward({.sum = loss.sum(), .weight = loss.weight()});
    phase_ = Phase::kBackwarded;
    pass_->batch = {};
  });
}

StepReport Engine::Impl::step() {
  return guarded([&] {
    require_step_now();
    const engine::StepReport report = engine_->step();
    phase_ = Phase::kReady;
    ++pass_->micro_step;
    if (report.window_finished) {
      pass_->micro_step = 0;
      grad_norm_ = report.grad_norm;
      skip_watch_.after(report);
      engine_->settle();
    }
    return reported(report);
  });
}

StepReport Engine::Impl::reported(const engine::StepReport& report) const {
  StepReport told{.window_finished = report.window_finished,
                  .updated = report.updated,
                  .step = report.step,
                  .attempts = report.attempts,
                  .grad_norm = report.grad_norm,
                  .clip_factor = report.clip_factor,
                  .learning_rate = report.learning_rate,
                  .loss = report.loss.mean(),
                  .loss_weight = report.loss.weight,
                  .loss_scale = report.loss_scale};
  if (!report.window_finished || report.updated) {
    return told;
  }
  if (report.loss.weight == 0) {
    told.skipped = "the window's losses have weight 0: there is nothing to follow";
    return told;
  }
  told.skipped = fmt::format("infinity or NaN in {}", report.non_finite);
  if (report.stuck_at_minimum) {
    told.skipped += fmt::format("; the loss scale {} is the least allowed", report.loss_scale);
  } else if (report.next_loss_scale != report.loss_scale) {
    told.skipped += fmt::format("; the loss scale goes to {}", report.next_loss_scale);
  }
  return told;
}

StepReport Engine::Impl::train_batch(std::span<const Batch> micro_batches) {
  guarded([&] { require_whole_window(micro_batches); });
  if (static_cast<std::int64_t>(micro_batches.size()) < config_.batch.accumulation) {
    set_window(static_cast<std::int64_t>(micro_batches.size()));
  }
  StepReport report;
  for (const Batch& batch : micro_batches) {
    backward(forward(batch));
    report = step();
  }
  return report;
}

void Engine::Impl::evaluating(bool on) {
  if (set_training_) {
    set_training_(!on);
  }
}

StepLoss Engine::Impl::evaluate(const Batch& batch) {
  return guarded([&]() -> StepLoss {
    if (phase_ == Phase::kForwarded) {
      throw Error(ErrorKind::kUsage,
                  "evaluate() between forward() and backward()\n  Evaluate before the forward or "
                  "after the step.");
    }
    evaluating(true);
    const engine::Loss loss = engine_->evaluate(begin_pass(batch, /*wants_output=*/false));
    evaluating(false);
    pass_->batch = {};
    return {loss.sum, loss.weight, nullptr, 0};
  });
}

at::Tensor Engine::Impl::infer(const Batch& batch) {
  return guarded([&] {
    if (phase_ == Phase::kForwarded || !gives_output_) {
      throw Error(ErrorKind::kUsage,
                  gives_output_
                      ? "infer() between forward() and backward()\n  Call it before the forward or "
                        "after the step."
                      : "infer() of a model whose callable gives its loss alone\n  Give a "
                        "torch::nn::Sequential or units, whose last output it is.");
    }
    evaluating(true);
    const models::TokenBatch tokens = begin_pass(batch, /*wants_output=*/true);
    at::Tensor output;
    if (tokens.num_targets == 0) {
      (void)engine_->evaluate(tokens);  // takes part in what the others need of this rank
    } else {
      output = engine_->infer({.batch = tokens});
    }
    evaluating(false);
    pass_->batch = {};
    return output;
  });
}

StepLoss Engine::Impl::sum_over_ranks(const StepLoss& loss) {
  return guarded([&]() -> StepLoss {
    const engine::Loss total =
        engine_->sum_over_ranks({.sum = loss.sum(), .weight = loss.weight()});
    return {total.sum, total.weight, nullptr, 0};
  });
}

std::string Engine::Impl::start_table() const {
  const models::ParameterCounts counts = models::count_parameters(units_);
  std::string table = config::start_table(config_);
  table += fmt::format("\nmodel: {} {}, {} of {} parameters trainable",
                       units_.size(),
                       units_.size() == 1 ? "unit" : "units",
                       counts.trainable,
                       counts.all);
  for (const std::string& line : groups_.lines) {
    table += "\n  " + line;
  }
  if (const std::int64_t total = config_.schedule.max_steps; total > 0) {
    table += fmt::format("\n{}", config::rates_line(config::schedule_of(config_, total), total));
  }
  for (const std::string& notice : groups_.notices) {
    table += "\nnotice: " + notice;
  }
  return table;
}

}  // namespace zeroth
