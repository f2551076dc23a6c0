#include "train/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/log.h"
#include "memory/process_memory.h"
#include "train/batches.h"
#include "train/evaluate.h"
#include <fmt/format.h>

namespace zeroth::train {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

Json finite_or_null(double value) {
  return std::isfinite(value) ? Json(value) : Json(nullptr);
}

}  // namespace

Trainer::Trainer(const config::RunConfig& config,
                 const TrainPlan& plan,
                 engine::Engine& engine,
                 const data::Dataset& train,
                 const data::Dataset* validation,
                 text::TokenId pad_id)
    : config_(config),
      plan_(plan),
      engine_(engine),
      train_(train),
      validation_(validation),
      pad_id_(pad_id),
      sampler_(static_cast<std::int64_t>(train.examples.size()),
               plan.global_rows,
               config.seed,
               config.data.shuffle),
      progress_(config.output.logging_steps),
      skip_watch_(config),
      counted_traffic_(engine.offload_traffic()) {
  if (engine_.comm().rank() == 0) {
    records_.emplace(std::filesystem::path(config.output.output_dir) / "metrics.jsonl");
  }
}

void Trainer::record(const Json& record) {
  if (records_) {
    records_->append(record);
  }
}

TrainSummary Trainer::run() {
  for (std::int64_t attempt = 0; attempt < plan_.total_updates; ++attempt) {
    const Window window = train_window(attempt);
    epoch_ = epoch_after(attempt);
    observe(window, attempt);
    warn_of_skips(window.report);
    skip_watch_.after(window.report);
    evaluate_if_due(attempt);
  }
  if (validation_ != nullptr && evaluated_at_ != summary_.updates) {
    evaluate_now();
  }
  progress_.finish();
  if (summary_.updates == 0) {
    throw Error(ErrorKind::kData,
                fmt::format("no update was made: all {} attempts were skipped, and there is "
                            "nothing to save\n  Each warning above says why. max_steps {} counts "
                            "attempts: give it more, or see to it that fewer fail.",
                            summary_.skipped,
                            plan_.total_updates));
  }
  if (!std::isfinite(summary_.last_loss)) {
    log::warn("the last loss is not finite: the model that is saved now gives no finite numbers");
  }
  summary_.train_loss = total_loss_.mean();
  return summary_;
}

Trainer::Window Trainer::train_window(std::int64_t attempt) {
  const Clock::time_point start = Clock::now();
  const std::vector<std::int64_t> global_batch = sampler_.global_batch(attempt);
  auto micro_steps = data::cut_into_micro_steps(
      global_batch, config_.batch.micro_batch_rows, engine_.comm().size(), engine_.comm().rank());
  Window window{.rows = static_cast<std::int64_t>(global_batch.size()),
                .tokens = num_tokens(train_, global_batch),
                .micro_steps = static_cast<std::int64_t>(micro_steps.size())};
  engine_.set_window(window.micro_steps);
  for (std::size_t index = 0; index < micro_steps.size(); ++index) {
    const models::TokenBatch batch = token_batch(train_, micro_steps[index], pad_id_);
    note_size(batch);
    const engine::Loss loss = engine_.forward(batch);
    engine_.backward(loss);
    window.report = engine_.step();
    if (config_.output.log_micro_steps) {
      record_micro_step(
          static_cast<std::int64_t>(index), engine_.sum_over_ranks(loss), window.rows);
    }
  }
  window.seconds = seconds_since(start);
  window.offloaded = take_traffic();
  return window;
}

// What all ranks read from files and wrote to them since the last call.
offload::Traffic Trainer::take_traffic() {
  if (!config_.offload.uses_files()) {
    return {};
  }
  const offload::Traffic now = engine_.offload_traffic();
  const std::vector<double> mine{static_cast<double>(now.read - counted_traffic_.read),
                                 static_cast<double>(now.written - counted_traffic_.written)};
  counted_traffic_ = now;
  const std::vector<double> all = engine_.comm().gather_values("bytes from and to files", mine);
  offload::Traffic total;
  for (std::size_t at = 0; at < all.size(); at += mine.size()) {
    total.read += static_cast<std::int64_t>(all[at]);
    total.written += static_cast<std::int64_t>(all[at + 1]);
  }
  return total;
}

void Trainer::note_size(const models::TokenBatch& batch) {
  if (!batch.ids_BT.defined()) {
    return;
  }
  const MicroBatchSize& largest = summary_.largest;
  if (batch.ids_BT.numel() > largest.rows * largest.tokens) {
    summary_.largest = {
        .rows = batch.ids_BT.size(0), .tokens = batch.ids_BT.size(1), .targets = batch.num_targets};
  }
}

void Trainer::observe(const Window& window, std::int64_t attempt) {
  const engine::StepReport& report = window.report;
  const double speed = static_cast<double>(window.tokens) / window.seconds;
  summary_.updates = report.updated ? report.step : summary_.updates;
  summary_.rows += window.rows;
  summary_.tokens += window.tokens;
  summary_.target_tokens += report.loss.weight;
  summary_.seconds += window.seconds;
  summary_.offloaded.read += window.offloaded.read;
  summary_.offloaded.written += window.offloaded.written;
  summary_.last_loss = report.loss.mean();
  if (report.updated) {
    total_loss_.sum += report.loss.sum;
    total_loss_.weight += report.loss.weight;
  }
  record({{"kind", "update"},
          {"step", report.step},
          {"updated", report.updated},
          {"epoch", epoch_},
          {"loss", finite_or_null(report.loss.mean())},
          {"grad_norm", finite_or_null(report.grad_norm)},
          {"clip_factor", report.clip_factor},
          {"learning_rate", report.learning_rate},
          {"rows", window.rows},
          {"target_tokens", report.loss.weight},
          {"micro_steps", window.micro_steps},
          {"attempts", report.attempts},
          {"loss_scale", report.loss_scale},
          {"seconds", window.seconds},
          {"tokens_per_second", speed},
          {"memory_bytes", memory::peak_resident_bytes()},
          {"model_state_bytes", engine_.tally().model_state_bytes()},
          {"offload_read_bytes", window.offloaded.read},
          {"offload_write_bytes", window.offloaded.written}});
  const double per_update = summary_.seconds / static_cast<double>(attempt + 1);
  if (engine_.comm().rank() == 0) {
    progress_.show(
        {.step = attempt + 1,
         .total = plan_.total_updates,
         .loss = report.loss.mean(),
         .learning_rate = report.learning_rate,
         .grad_norm = report.grad_norm,
         .clip_factor = report.clip_factor,
         .skipped = !report.updated,
         .tokens_per_second = static_cast<double>(summary_.tokens) / summary_.seconds,
         .seconds_left = per_update * static_cast<double>(plan_.total_updates - attempt - 1)});
  }
}

void Trainer::warn_of_skips(const engine::StepReport& report) {
  if (report.updated && report.non_finite.empty()) {
    return;
  }
  progress_.finish();
  if (report.updated) {
    log::warn(
        fmt::format("update {} was made with inf or NaN in {}, since check_grad_overflow is "
                    "off",
                    report.step,
                    report.non_finite));
    return;
  }
  ++summary_.skipped;
  log::warn(fmt::format("attempt {} made no update: {}", report.attempts, why_skipped(report)));
}

std::string Trainer::why_skipped(const engine::StepReport& report) const {
  if (report.loss.weight == 0) {
    return "its rows hold no target token";
  }
  const std::string scale =
      config_.model.precision != config::Precision::kFp16 ? ""
      : report.next_loss_scale == report.loss_scale
          ? fmt::format("; the loss scale stays at {}", report.loss_scale)
          : fmt::format("; loss scale {} -> {}", report.loss_scale, report.next_loss_scale);
  return fmt::format("inf or NaN in {} (loss {}){}; weights and moments are as before",
                     report.non_finite,
                     report.loss.mean(),
                     scale);
}

void Trainer::evaluate_if_due(std::int64_t attempt) {
  if (validation_ == nullptr) {
    return;
  }
  const std::int64_t every =
      config_.output.eval_steps > 0 ? config_.output.eval_steps : config_.output.logging_steps;
  const bool by_steps =
      config_.output.eval_cadence == config::Cadence::kSteps && (attempt + 1) % every == 0;
  const bool by_epoch = config_.output.eval_cadence == config::Cadence::kEpoch &&
                        (attempt + 1) % plan_.updates_per_epoch == 0;
  if (by_steps || by_epoch) {
    evaluate_now();
  }
}

void Trainer::evaluate_now() {
  const Clock::time_point start = Clock::now();
  engine_.comm().note(fmt::format("evaluation after update {}", summary_.updates));
  const engine::Loss loss = evaluate(engine_, *validation_, config_.batch.eval_rows, pad_id_);
  evaluated_at_ = summary_.updates;
  summary_.eval_loss = loss.mean();
  record({{"kind", "evaluation"},
          {"step", summary_.updates},
          {"epoch", epoch_},
          {"loss", finite_or_null(loss.mean())},
          {"perplexity", finite_or_null(std::exp(loss.mean()))},
          {"rows", validation_->examples.size()},
          {"target_tokens", loss.weight},
          {"seconds", seconds_since(start)}});
  progress_.finish();
  log::info(fmt::format(
      "evaluation after update {}: loss {:.4f}, perplexity {:.3f} over {} rows, {} target tokens",
      summary_.updates,
      loss.mean(),
      std::exp(loss.mean()),
      validation_->examples.size(),
      observe::grouped(loss.weight)));
}

// Of all ranks together.
void Trainer::record_micro_step(std::int64_t index,
                                const engine::Loss& loss,
                                std::int64_t window_rows) {
  const std::int64_t rows_a_step = config_.batch.micro_batch_rows * engine_.comm().size();
  record({{"kind", "micro_step"},
          {"step", summary_.updates + 1},
          {"micro_step", index + 1},
          {"loss", finite_or_null(loss.mean())},
          {"rows", std::min(rows_a_step, window_rows - index * rows_a_step)},
          {"target_tokens", loss.weight}});
}

double Trainer::epoch_after(std::int64_t attempt) const {
  return static_cast<double>(attempt + 1) / static_cast<double>(plan_.updates_per_epoch);
}

}  // namespace zeroth::train
