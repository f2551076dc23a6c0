#include "engine/engine.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <exception>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/phases.h"
#include "engine/parameter_owners.h"
#include "optim/norm.h"
#include "zero/frozen_weights.h"
#include "zero/packed_weights.h"
#include <fmt/format.h>

namespace zeroth::engine {

using arithmetic::LossScaler;

namespace {

// One rank alone has nobody to share with: every stage is the plain one, but for weights that rest
// on file. Gradients rest there where the stage keeps nothing but this rank's sums.
zero::ZeroOptions zero_options(const EngineOptions& options, int num_moments, bool alone) {
  using zero::Place;
  const zero::StagePolicy asked =
      zero::policy_for(options.zero_stage, options.reduce_every_micro_step);
  const zero::Resting& resting = options.tuning.resting;
  zero::StagePolicy policy = asked;
  if (alone) {
    policy = {};
    policy.shard_parameters = asked.shard_parameters && resting.parameters == Place::kFile;
  }
  const bool sums_alone = asked.shard_optimizer && asked.reduce_every_micro_step;
  return {options.tuning,
          policy,
          options.dtype,
          num_moments,
          sums_alone ? resting.optimizer : Place::kMemory};
}

void refuse_norms_of_files(const optim::Optimizer& optimizer, const zero::Resting& resting) {
  const bool on_file =
      resting.optimizer == zero::Place::kFile || resting.parameters == zero::Place::kFile;
  if (optimizer.uses_norms() && on_file) {
    throw Error(ErrorKind::kConfig,
                "an optimizer that needs norms of whole parameters (LAMB) works on state in memory "
                "alone, and offload is nvme\n  Take AdamW, Adam, SGD, Lion or Adagrad, or offload "
                "nothing.");
  }
}

std::array<double, 2> terms_of(const Loss& loss) {
  return {loss.sum, static_cast<double>(loss.weight)};
}

Loss total_of(const std::vector<double>& terms) {
  Loss total;
  for (std::size_t rank = 0; rank < terms.size() / 2; ++rank) {
    total.sum += terms[2 * rank];
    total.weight += static_cast<std::int64_t>(terms[2 * rank + 1]);
  }
  return total;
}

constexpr auto kLossLabel = "loss and target tokens";

}  // namespace

Engine::Engine(models::UnitList& units,
               std::unique_ptr<optim::Optimizer> optimizer,
               const EngineOptions& options,
               std::shared_ptr<comm::Communicator> comm,
               std::shared_ptr<memory::Tally> tally)
    : tally_(std::move(tally)),
      optimizer_(std::move(optimizer)),
      options_(options),
      window_micro_steps_(options.accumulation_steps) {
  ZEROTH_CHECK(!units.empty(), "a model without units");
  refuse_shared_parameters(units);
  refuse_norms_of_files(*optimizer_, options.tuning.resting);
  zero::hold_frozen(units, {.dtype = options.dtype, .share = options.share_frozen}, *comm, tally_);
  zero::pack_frozen(
      units, {.packing = options.pack_weights, .share = options.share_frozen}, *comm, tally_);
  const auto borrowed_from = lenders_of(units);
  shared_ = std::make_shared<zero::SharedState>(
      comm,
      zero_options(options, optimizer_->num_moments(), comm->size() == 1),
      zero::UnitSizes{.padded_numels = padded_numels(units, comm->size()),
                      .num_lenders = num_lenders(borrowed_from)},
      tally_);
  walk_ = std::make_unique<Walk>(units,
                                 shared_,
                                 borrowed_from,
                                 Walk::Options{.recompute = options.recompute_activations,
                                               .unused = options.unused,
                                               .checks_graphs = options.checks_graphs,
                                               .seed = options.seed});
  updates_ = std::make_unique<zero::UpdateStream>(walk_->units(), *shared_);
  if (options.dtype == at::kHalf) {
    scaler_.emplace(options.loss_scale);
  }
}

template <typename Work>
auto Engine::told(const Work& work) const -> decltype(work()) {
  try {
    return work();
  } catch (const std::exception& error) {
    comm().abort(error.what());
    throw;
  }
}

void Engine::set_window(std::int64_t num_micro_steps) {
  ZEROTH_CHECK(micro_steps_done_ == 0, "a window's length changes after its first micro-step");
  ZEROTH_CHECK(num_micro_steps >= 1, "a window of {} micro-steps", num_micro_steps);
  window_micro_steps_ = num_micro_steps;
}

Loss Engine::forward(const models::TokenBatch& batch) {
  ZEROTH_CHECK(!awaiting_backward_, "two forwards without a backward between them");
  awaiting_backward_ = true;
  const Walk::Output output = told([&] { return walk_->forward(batch, num_updates_); });
  if (!non_finite_output_) {
    non_finite_output_ = walk_->first_non_finite();
  }
  return {.sum = output.sum, .weight = output.weight};
}

void Engine::backward(const Loss& loss) {
  ZEROTH_CHECK(awaiting_backward_, "a backward without a forward");
  awaiting_backward_ = false;
  window_loss_.sum += loss.sum;
  window_loss_.weight += loss.weight;
  const bool last = is_last_micro_step();
  told([&] {
    if (last) {
      start_summing_losses();
    }
    walk_->backward(loss_scale() / options_.gradient_divisor, last);
  });
}

StepReport Engine::step() {
  ZEROTH_CHECK(!awaiting_backward_, "a step between forward and backward");
  if (++micro_steps_done_ < window_micro_steps_) {
    return {.step = num_updates_, .attempts = num_attempts_};
  }
  const StepReport report = told([this] { return finish_window(); });
  for (zero::UnitState& unit : walk_->units()) {
    unit.clear_gradients();
  }
  window_loss_ = {};
  non_finite_output_.reset();
  micro_steps_done_ = 0;
  window_micro_steps_ = options_.accumulation_steps;
  return report;
}

Engine::Position Engine::position() const {
  return {.updates = num_updates_,
          .attempts = num_attempts_,
          .scaler = scaler_ ? std::optional(scaler_->state()) : std::nullopt};
}

void Engine::set_position(const Position& position) {
  ZEROTH_CHECK(micro_steps_done_ == 0, "a position is set between windows");
  num_updates_ = position.updates;
  num_attempts_ = position.attempts;
  if (scaler_ && position.scaler) {
    scaler_.emplace(options_.loss_scale, *position.scaler);
  }
}

void Engine::settle() {
  for (zero::UnitState& unit : walk_->units()) {
    unit.settle();
  }
}

// The last backward hides the way of these few bytes.
void Engine::start_summing_losses() {
  window_terms_ = terms_of(window_loss_);
  window_losses_ = comm().start_gathering_values(kLossLabel, window_terms_);
}

StepReport Engine::finish_window() {
  ++num_attempts_;
  note("reduction");
  const Loss loss = total_of(window_losses_.wait());
  StepReport report{
      .window_finished = true, .step = num_updates_, .attempts = num_attempts_, .loss = loss};
  report.learning_rate = learning_rate();
  report.loss_scale = report.next_loss_scale = loss_scale();
  finish_reductions();
  if (loss.weight == 0) {
    return report;
  }
  if (!first_window_done_) {
    walk_->require_all_used();
    first_window_done_ = true;
  }
  note("step");
  const PhaseScope phase(Phase::kOptimizer);
  const double per_target =
      options_.gradient_divisor / (report.loss_scale * static_cast<double>(loss.weight));
  report.grad_norm = gradient_norm(per_target);
  decide(report);
  if (report.updated) {
    report.clip_factor = optim::clip_factor(report.grad_norm, options_.max_grad_norm);
    apply(report, per_target * report.clip_factor);
    report.step = num_updates_;
  }
  return report;
}

// Whether the gradient is fit to be applied, and with which scale the next attempt goes on. The
// norm is an fp64 sum, so it is finite exactly when every gradient is.
void Engine::decide(StepReport& report) {
  const bool overflow = !std::isfinite(report.grad_norm);
  report.updated = !overflow || (options_.dtype == at::kBFloat16 && !options_.skip_non_finite);
  if (overflow) {
    report.non_finite = where_not_finite();
  }
  if (scaler_) {
    report.stuck_at_minimum = scaler_->update(overflow) == LossScaler::Verdict::kStuckAtMinimum;
    report.next_loss_scale = scaler_->scale();
  }
}

void Engine::apply(const StepReport& report, double gradient_scale) {
  optim::UpdateStep update{.update = num_updates_ + 1,
                           .learning_rate = report.learning_rate,
                           .gradient_scale = gradient_scale};
  if (const auto betas = options_.schedule.betas_at(num_updates_)) {
    update.betas = {betas->first, betas->second};
  }
  ++num_updates_;
  if (optimizer_->uses_norms()) {
    update_by_ratios(update);
    return;
  }
  updates_->run(*optimizer_, update);
}

void Engine::update_by_ratios(const optim::UpdateStep& update) {
  const auto ratios = trust_ratios(update);
  for (std::size_t index = 0; index < ratios.size(); ++index) {
    walk_->units()[index].update_with_ratios(*optimizer_, update, ratios[index]);
  }
}

// Of each unit's parameters: from sums over their shards, added in rank order in every stage.
std::vector<std::vector<double>> Engine::trust_ratios(const optim::UpdateStep& update) {
  std::vector<std::vector<double>> ratios;
  for (zero::UnitState& unit : walk_->units()) {
    std::vector<double> sums;  // range after range: weights and update of each parameter
    for (const auto& range : unit.measure(*optimizer_, update)) {
      for (const optim::Optimizer::Norms& norms : range) {
        sums.insert(sums.end(), {norms.weights, norms.update});
      }
    }
    if (shared_->options().policy.shard_optimizer && unit.trains()) {
      sums = comm().gather_values("norms of " + unit.unit().name(), sums);
    }
    const std::size_t parameters = unit.trainable().size();
    auto& of_unit = ratios.emplace_back();
    for (std::size_t parameter = 0; parameter < parameters; ++parameter) {
      optim::Optimizer::Norms total;
      for (std::size_t at = 2 * parameter; at < sums.size(); at += 2 * parameters) {
        total.weights += sums[at];
        total.update += sums[at + 1];
      }
      of_unit.push_back(optimizer_->ratio(total));
    }
  }
  return ratios;
}

std::vector<std::string> Engine::resting_texts() const {
  std::vector<std::string> texts;
  const auto& optimizer = shared_->optimizer_space();
  const auto& parameters = shared_->parameter_space();
  if (optimizer != nullptr) {
    texts.push_back(
        fmt::format("{} rest in {}",
                    optimizer == parameters ? "weights and optimizer state" : "optimizer state",
                    optimizer->text()));
  }
  if (parameters != nullptr && parameters != optimizer) {
    texts.push_back(fmt::format("weights rest in {}", parameters->text()));
  }
  return texts;
}

Loss Engine::evaluate(const models::TokenBatch& batch) {
  if (batch.num_targets == 0) {
    told([this] { walk_->infer_without_rows(); });
    return {};
  }
  std::int64_t targets = batch.num_targets;
  const at::Tensor sum = infer({.batch = batch, .counted_targets = &targets});
  return {.sum = sum.item<double>(), .weight = targets};
}

at::Tensor Engine::infer(const models::ForwardContext& context) {
  return told([&] { return walk_->infer(context); });
}

void Engine::note(const char* phase) const {
  comm().note(fmt::format("{} of update {}", phase, num_updates_ + 1));
}

void Engine::finish_reductions() {
  for (zero::UnitState& unit : walk_->units()) {
    unit.finish_gradients();
  }
}

// In fp64 over each shard range, then over the ranges in rank order: the same in every stage.
double Engine::gradient_norm(double scale) const {
  const auto range_sum = [this](std::int64_t rank) {
    double sum = 0;
    for (const zero::UnitState& unit : walk_->units()) {
      sum += unit.sum_of_squares(rank);
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
  return total_of(comm().gather_values(kLossLabel, terms_of(loss)));
}

}  // namespace zeroth::engine
