// Evaluations of a run, and the checkpoints that follow from them, from counts and from signals.
#include <chrono>
#include <cmath>

#include "base/log.h"
#include "checkpoint/folder.h"
#include "train/checkpoint_load.h"
#include "train/evaluate.h"
#include "train/trainer.h"
#include <fmt/format.h>

namespace zeroth::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// An old checkpoint that does not go is no reason to end a run.
void remove_old_checkpoints(const config::RunConfig& config, const std::string& best) {
  try {
    checkpoint::rotate(config.output.output_dir, config.saving.total_limit, {best});
  } catch (const Error& error) {
    log::warn(error.what());
  }
}

}  // namespace

bool Trainer::ends_epoch() const {
  return progress_.rows_at.row == 0;
}

void Trainer::evaluate_if_due() {
  if (inputs_.validation == nullptr) {
    return;
  }
  const std::int64_t every =
      config_.output.eval_steps > 0 ? config_.output.eval_steps : config_.output.logging_steps;
  const config::Cadence cadence = config_.output.eval_cadence;
  const bool by_steps = cadence == config::Cadence::kSteps && progress_.windows % every == 0;
  const bool by_epoch = cadence == config::Cadence::kEpoch && ends_epoch();
  if (by_steps || by_epoch) {
    evaluate_now();
  }
}

void Trainer::evaluate_now() {
  const Clock::time_point start = Clock::now();
  engine_.comm().note(fmt::format("evaluation after update {}", updates()));
  const data::Dataset& rows = *inputs_.validation;
  const engine::Loss loss = evaluate(engine_, rows, config_.batch.eval_rows, inputs_.pad_id);
  const double seconds = seconds_since(start);
  progress_.evaluated_at = updates();
  progress_.eval_loss = loss.mean();
  if (std::isfinite(loss.mean()) && (!progress_.best || loss.mean() < progress_.best->loss)) {
    progress_.best = {.loss = loss.mean(), .update = updates(), .checkpoint = {}};
    found_best_ = true;
  }
  record({{"kind", "evaluation"},
          {"step", updates()},
          {"epoch", epoch_},
          {"loss", finite_or_null(loss.mean())},
          {"perplexity", finite_or_null(std::exp(loss.mean()))},
          {"rows", rows.examples.size()},
          {"target_tokens", loss.weight},
          {"seconds", seconds}});
  progress_.log_history.push_back({{"epoch", epoch_},
                                   {"eval_loss", finite_or_null(loss.mean())},
                                   {"eval_runtime", seconds},
                                   {"step", updates()}});
  line_.finish();
  log::info(fmt::format(
      "evaluation after update {}: loss {:.4f}, perplexity {:.3f} over {} rows, {} target tokens",
      updates(),
      loss.mean(),
      std::exp(loss.mean()),
      rows.examples.size(),
      observe::grouped(loss.weight)));
}

// A signal reaches the ranks at different times; what one was asked, all do.
Request Trainer::agreed_request() {
  const Request mine = requests_();
  const std::vector<double> all = engine_.comm().gather_values(
      "requests", std::vector<double>{mine.save ? 1.0 : 0.0, static_cast<double>(mine.stop)});
  Request agreed;
  for (std::size_t at = 0; at < all.size(); at += 2) {
    agreed.save = agreed.save || all[at] != 0;
    agreed.stop = agreed.stop != 0 ? agreed.stop : static_cast<int>(all[at + 1]);
  }
  return agreed;
}

bool Trainer::save_is_due(const engine::StepReport& report) const {
  const config::SavingSettings& saving = config_.saving;
  if (!trained_.saves) {
    return false;
  }
  switch (saving.cadence) {
    case config::SaveCadence::kNo:
      return false;
    case config::SaveCadence::kSteps: {
      const double share = saving.steps * static_cast<double>(inputs_.plan.total_updates);
      const auto every =
          static_cast<std::int64_t>(saving.steps < 1 ? std::ceil(share) : saving.steps);
      return report.updated && updates() % every == 0;
    }
    case config::SaveCadence::kEpoch:
      return ends_epoch();
    case config::SaveCadence::kBest:
      return found_best_;
  }
  return false;
}

void Trainer::save() {
  if (!trained_.saves) {
    line_.finish();
    log::warn("nothing is saved: not every rank sees output_dir");
    return;
  }
  const Clock::time_point start = Clock::now();
  engine_.comm().note(fmt::format("checkpoint of update {}", updates()));
  std::optional<BestEvaluation>& best = progress_.best;
  if (best && best->update == updates()) {
    best->checkpoint = checkpoint::folder_name(updates());
  }
  summary_.checkpoint = save_checkpoint(trained_, progress_, inputs_.fingerprints);
  ++summary_.num_checkpoints;
  saved_windows_ = progress_.windows;
  found_best_ = false;
  line_.finish();
  log::info(
      fmt::format("{} saved in {:.2f} s", summary_.checkpoint.string(), seconds_since(start)));
  const bool keeps_best = best && (config_.saving.load_best_at_end ||
                                   config_.saving.cadence == config::SaveCadence::kBest);
  if (engine_.comm().rank() == 0) {
    remove_old_checkpoints(config_, keeps_best ? best->checkpoint : "");
  }
}

// Weights of the best evaluation (case K20), where those are not the last ones.
void Trainer::load_best() {
  const std::optional<BestEvaluation>& best = progress_.best;
  if (!best || best->checkpoint.empty()) {
    throw Error(ErrorKind::kCheckpoint,
                "load_best_model_at_end finds no checkpoint of a best evaluation\n  No evaluation "
                "gave a finite loss, or none was saved.");
  }
  summary_.best_loaded = best;
  if (best->update == updates()) {
    return;
  }
  const fs::path folder = fs::path(config_.output.output_dir) / best->checkpoint;
  engine_.comm().note("loading the best weights");
  load_weights(open_weights(folder, engine_.comm()), engine_);
}

}  // namespace zeroth::train
