#include "train/trainer.h"

#include <algorithm>
#include <cmath>

#include "base/log.h"
#include "base/timing.h"
#include "checkpoint/folder.h"
#include "memory/process_memory.h"
#include "train/batches.h"
#include <fmt/format.h>

namespace zeroth::train {
namespace {

namespace fs = std::filesystem;

}  // namespace

Trainer::Trainer(const Trained& trained,
                 const TrainInputs& inputs,
                 Progress start,
                 std::function<Request()> requests)
    : trained_(trained),
      config_(trained.config),
      inputs_(inputs),
      engine_(trained.engine),
      requests_(std::move(requests)),
      sampler_(static_cast<std::int64_t>(inputs.train.examples.size()),
               inputs.plan.global_rows,
               config_.seed,
               config_.data.shuffle,
               inputs.plan.start),
      progress_(std::move(start)),
      line_(config_.output.logging_steps),
      skip_watch_(config_, progress_.skipped_in_a_row),
      counted_traffic_(engine_.offload_traffic()) {
  const fs::path resumed = fs::path(config_.output.output_dir) / checkpoint::folder_name(updates());
  if (progress_.windows > 0 && fs::exists(resumed)) {
    saved_windows_ = progress_.windows;
  }
  if (engine_.comm().rank() == 0) {
    records_.emplace(fs::path(config_.output.output_dir) / "metrics.jsonl",
                     progress_.metrics_bytes);
  }
}

void Trainer::record(const Json& record) {
  if (records_) {
    records_->append(record);
    progress_.metrics_bytes = records_->bytes();
  }
}

TrainSummary Trainer::run() {
  continue_evaluation();
  const bool to_the_end = train_until_stopped() && evaluate_at_the_end();
  line_.finish();
  if (to_the_end) {
    finish();
  }
  summary_.train_loss = progress_.total_loss.mean();
  summary_.progress = progress_;
  return summary_;
}

// False if people asked to stop before the last update.
bool Trainer::train_until_stopped() {
  for (std::int64_t attempt = inputs_.plan.start.update; attempt < inputs_.plan.total_updates;
       ++attempt) {
    const Window window = train_window(attempt);
    count(window, attempt);
    observe(window, attempt);
    warn_of_skips(window.report);
    skip_watch_.after(window.report);
    progress_.skipped_in_a_row = skip_watch_.in_a_row();
    progress_.evaluation_due = evaluation_is_due();
    take_requests();
    evaluate_unless_stopped();
    if (asked_.save || asked_.stop != 0 || save_is_due(window.report)) {
      save();
    }
    if (asked_.stop != 0 && attempt + 1 < inputs_.plan.total_updates) {
      summary_.stopped_by = asked_.stop;
      return false;
    }
  }
  return true;
}

// False if people asked to stop before it was done: then it is made when the run goes on.
bool Trainer::evaluate_at_the_end() {
  if (inputs_.validation == nullptr || progress_.evaluated_at == updates()) {
    return true;
  }
  progress_.evaluation_due = true;
  evaluate_unless_stopped();
  if (progress_.evaluation_due && saved_windows_ != progress_.windows) {
    save();
  }
  summary_.stopped_by = progress_.evaluation_due ? asked_.stop : 0;
  return !progress_.evaluation_due;
}

void Trainer::finish() {
  if (updates() == 0) {
    throw Error(ErrorKind::kData,
                fmt::format("no update was made: all {} attempts were skipped, and there is "
                            "nothing to save\n  Each warning above says why. max_steps {} counts "
                            "attempts: give it more, or see to it that fewer fail.",
                            progress_.skipped,
                            inputs_.plan.total_updates));
  }
  if (!std::isfinite(progress_.last_loss)) {
    log::warn("the last loss is not finite: the model that is saved now gives no finite numbers");
  }
  const config::SaveCadence cadence = config_.saving.cadence;
  const bool by_count =
      cadence == config::SaveCadence::kSteps || cadence == config::SaveCadence::kEpoch;
  if (!trained_.saves) {
    return;
  }
  if ((by_count && saved_windows_ != progress_.windows) ||
      (cadence == config::SaveCadence::kBest && found_best_)) {
    save();
  }
  if (config_.saving.load_best_at_end) {
    load_best();
  }
}

Trainer::Window Trainer::train_window(std::int64_t attempt) {
  const Clock::time_point start = Clock::now();
  const std::vector<std::int64_t> global_batch = sampler_.global_batch(attempt);
  auto micro_steps = data::cut_into_micro_steps(
      global_batch, config_.batch.micro_batch_rows, engine_.comm().size(), engine_.comm().rank());
  Window window{.rows = static_cast<std::int64_t>(global_batch.size()),
                .tokens = num_tokens(inputs_.train, global_batch),
                .micro_steps = static_cast<std::int64_t>(micro_steps.size())};
  engine_.set_window(window.micro_steps);
  for (std::size_t index = 0; index < micro_steps.size(); ++index) {
    const models::TokenBatch batch = token_batch(inputs_.train, micro_steps[index], inputs_.pad_id);
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

void Trainer::count(const Window& window, std::int64_t attempt) {
  const engine::StepReport& report = window.report;
  ++progress_.windows;
  progress_.rows_at = sampler_.position_of(attempt + 1);
  progress_.engine = engine_.position();
  progress_.skipped += report.updated ? 0 : 1;
  progress_.rows += window.rows;
  progress_.tokens += window.tokens;
  progress_.target_tokens += report.loss.weight;
  progress_.seconds += window.seconds;
  progress_.offloaded.read += window.offloaded.read;
  progress_.offloaded.written += window.offloaded.written;
  progress_.last_loss = report.loss.mean();
  if (report.updated) {
    progress_.total_loss.sum += report.loss.sum;
    progress_.total_loss.weight += report.loss.weight;
  }
}

double Trainer::epoch() const {
  const data::RowPosition& next = progress_.rows_at;
  const std::int64_t in_epoch =
      (next.row + inputs_.plan.global_rows - 1) / inputs_.plan.global_rows;
  return static_cast<double>(next.epoch * inputs_.plan.updates_per_epoch + in_epoch) /
         static_cast<double>(inputs_.plan.updates_per_epoch);
}

void Trainer::observe(const Window& window, std::int64_t attempt) {
  const engine::StepReport& report = window.report;
  const double speed = static_cast<double>(window.tokens) / window.seconds;
  record({{"kind", "update"},
          {"step", report.step},
          {"updated", report.updated},
          {"epoch", epoch()},
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
  add_to_history(report);
  const std::int64_t total = inputs_.plan.total_updates;
  const double per_update = progress_.seconds / static_cast<double>(progress_.windows);
  if (engine_.comm().rank() == 0) {
    line_.show({.step = attempt + 1,
                .total = total,
                .loss = report.loss.mean(),
                .learning_rate = report.learning_rate,
                .grad_norm = report.grad_norm,
                .clip_factor = report.clip_factor,
                .skipped = !report.updated,
                .tokens_per_second = static_cast<double>(progress_.tokens) / progress_.seconds,
                .seconds_left = per_update * static_cast<double>(total - attempt - 1)});
  }
}

// The loss since the last entry, as Transformers averages it.
void Trainer::add_to_history(const engine::StepReport& report) {
  if (!report.updated) {
    return;
  }
  progress_.unlogged_loss.sum += report.loss.sum;
  progress_.unlogged_loss.weight += report.loss.weight;
  if (report.step % config_.output.logging_steps == 0) {
    progress_.log_history.push_back({{"epoch", epoch()},
                                     {"grad_norm", finite_or_null(report.grad_norm)},
                                     {"learning_rate", report.learning_rate},
                                     {"loss", finite_or_null(progress_.unlogged_loss.mean())},
                                     {"step", report.step}});
    progress_.unlogged_loss = {};
  }
}

void Trainer::warn_of_skips(const engine::StepReport& report) {
  if (report.updated && report.non_finite.empty()) {
    return;
  }
  line_.finish();
  if (report.updated) {
    log::warn(
        fmt::format("update {} was made with inf or NaN in {}, since check_grad_overflow is "
                    "off",
                    report.step,
                    report.non_finite));
    return;
  }
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

// Of all ranks together.
void Trainer::record_micro_step(std::int64_t index,
                                const engine::Loss& loss,
                                std::int64_t window_rows) {
  const std::int64_t rows_a_step = config_.batch.micro_batch_rows * engine_.comm().size();
  record({{"kind", "micro_step"},
          {"step", updates() + 1},
          {"micro_step", index + 1},
          {"loss", finite_or_null(loss.mean())},
          {"rows", std::min(rows_a_step, window_rows - index * rows_a_step)},
          {"target_tokens", loss.weight}});
}

}  // namespace zeroth::train
