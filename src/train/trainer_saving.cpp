// Evaluations of a run, and the checkpoints that follow from them, from counts and from signals.
#include <cmath>

#include "base/log.h"
#include "base/text.h"
#include "base/timing.h"
#include "checkpoint/folder.h"
#include "comm/gather_texts.h"
#include "train/checkpoint_load.h"
#include "train/evaluate.h"
#include "train/trainer.h"
#include <fmt/format.h>

namespace zeroth::train {
namespace {

namespace fs = std::filesystem;

// An old checkpoint that does not go is no reason to end a run.
void remove_old_checkpoints(const config::RunConfig& config, const std::string& best) {
  try {
    const std::vector<std::string> newer =
        checkpoint::rotate(config.output.output_dir, config.saving.total_limit, {best});
    if (!newer.empty()) {
      log::info(fmt::format("{} from before the run went back: removed (save_total_limit {})",
                            join(newer, ", "),
                            config.saving.total_limit));
    }
  } catch (const Error& error) {
    log::warn(error.what());
  }
}

}  // namespace

bool Trainer::ends_epoch() const {
  return progress_.rows_at.row == 0;
}

bool Trainer::evaluation_is_due() const {
  if (inputs_.validation == nullptr) {
    return false;
  }
  const std::int64_t every =
      config_.output.eval_steps > 0 ? config_.output.eval_steps : config_.output.logging_steps;
  const config::Cadence cadence = config_.output.eval_cadence;
  const bool by_steps = cadence == config::Cadence::kSteps && progress_.windows % every == 0;
  return by_steps || (cadence == config::Cadence::kEpoch && ends_epoch());
}

// A request to stop does not wait for an evaluation, which may take longer than people have: it is
// then made first when the run goes on.
void Trainer::evaluate_unless_stopped() {
  if (!progress_.evaluation_due || asked_.stop != 0) {
    return;
  }
  const Clock::time_point start = Clock::now();
  engine_.comm().note(fmt::format("evaluation after update {}", updates()));
  const std::optional<engine::Loss> loss =
      evaluate(engine_, *inputs_.validation, config_.batch.eval_rows, inputs_.pad_id, [this] {
        take_requests();
        return asked_.stop != 0;
      });
  if (loss) {
    take_evaluation(*loss, seconds_since(start));
    take_requests();
  }
}

void Trainer::take_evaluation(const engine::Loss& loss, double seconds) {
  const data::Dataset& rows = *inputs_.validation;
  progress_.evaluation_due = false;
  progress_.evaluated_at = updates();
  progress_.evaluated_rows = rows.fingerprint;
  progress_.eval_loss = loss.mean();
  if (std::isfinite(loss.mean()) && (!progress_.best || loss.mean() < progress_.best->loss)) {
    progress_.best = {.loss = loss.mean(), .update = updates(), .checkpoint = {}};
    found_best_ = true;
  }
  record({{"kind", "evaluation"},
          {"step", updates()},
          {"epoch", epoch()},
          {"loss", finite_or_null(loss.mean())},
          {"perplexity", finite_or_null(std::exp(loss.mean()))},
          {"rows", rows.examples.size()},
          {"target_tokens", loss.weight},
          {"seconds", seconds}});
  progress_.log_history.push_back({{"epoch", epoch()},
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

// What a resumed run was stopped before. Where it goes on in the folder of its checkpoint, a best
// one stands already.
void Trainer::continue_evaluation() {
  forget_best_of_other_rows();
  forget_best_elsewhere();
  progress_.evaluation_due = progress_.evaluation_due && inputs_.validation != nullptr;
  evaluate_unless_stopped();
  if (found_best_ && saved_windows_ == progress_.windows) {
    note_saved_best();
  } else if (found_best_ && config_.saving.cadence == config::SaveCadence::kBest) {
    save();
  }
}

// Losses of other rows say nothing of which weights are better.
void Trainer::forget_best_of_other_rows() {
  const bool other = inputs_.validation != nullptr && progress_.best &&
                     progress_.evaluated_rows != inputs_.validation->fingerprint;
  if (other) {
    log::warn(
        fmt::format("the validation rows are others than the checkpoint's: its best "
                    "evaluation (update {}, loss {:.4f}) counts no more",
                    progress_.best->update,
                    progress_.best->loss));
    progress_.best.reset();
    progress_.best_saved.reset();
  }
}

// Better now than at the end of the run.
void Trainer::forget_best_elsewhere() {
  const std::optional<BestEvaluation>& best = progress_.best_saved;
  if (!best || !trained_.saves || !config_.saving.load_best_at_end) {
    return;
  }
  const fs::path folder = fs::path(config_.output.output_dir) / best->checkpoint;
  const std::string fault =
      comm::gather_texts(engine_.comm(), "best checkpoint", checkpoint::fault_of(folder))[0];
  if (!fault.empty()) {
    log::warn(
        fmt::format("{} of the best evaluation so far (update {}, loss {:.4f}) is of no use "
                    "here: {}\n  The best of those that come will be loaded at the end.",
                    folder.string(),
                    best->update,
                    best->loss,
                    fault));
    progress_.best.reset();
    progress_.best_saved.reset();
  }
}

// A signal reaches the ranks at different times; what one was asked, all do.
void Trainer::take_requests() {
  const Request mine = requests_();
  const std::vector<double> all = engine_.comm().gather_values(
      "requests", std::vector<double>{mine.save ? 1.0 : 0.0, static_cast<double>(mine.stop)});
  for (std::size_t at = 0; at < all.size(); at += 2) {
    asked_.save = asked_.save || all[at] != 0;
    asked_.stop = asked_.stop != 0 ? asked_.stop : static_cast<int>(all[at + 1]);
  }
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

// The checkpoint of these weights stands, or is about to.
void Trainer::note_saved_best() {
  if (progress_.evaluated_at != updates() || !progress_.eval_loss ||
      !std::isfinite(*progress_.eval_loss)) {
    return;
  }
  std::optional<BestEvaluation>& saved = progress_.best_saved;
  if (!saved || *progress_.eval_loss < saved->loss) {
    saved = {.loss = *progress_.eval_loss,
             .update = updates(),
             .checkpoint = checkpoint::folder_name(updates())};
  }
  if (progress_.best && progress_.best->update == updates()) {
    progress_.best->checkpoint = saved->checkpoint;
  }
  found_best_ = false;
}

void Trainer::save() {
  asked_.save = false;
  if (!trained_.saves) {
    line_.finish();
    log::warn("nothing is saved: not every rank sees output_dir");
    return;
  }
  const Clock::time_point start = Clock::now();
  engine_.comm().note(fmt::format("checkpoint of update {}", updates()));
  note_saved_best();
  summary_.checkpoint = save_checkpoint(trained_, progress_, inputs_.fingerprints);
  ++summary_.num_checkpoints;
  saved_windows_ = progress_.windows;
  line_.finish();
  log::info(
      fmt::format("{} saved in {:.2f} s", summary_.checkpoint.string(), seconds_since(start)));
  const std::optional<BestEvaluation>& best = progress_.best_saved;
  const bool keeps_best = best && (config_.saving.load_best_at_end ||
                                   config_.saving.cadence == config::SaveCadence::kBest);
  if (engine_.comm().rank() == 0) {
    remove_old_checkpoints(config_, keeps_best ? best->checkpoint : "");
  }
  take_requests();  // one that came meanwhile needs no further update
}

// Weights of the best evaluation that was saved (case K20), where those are not the last ones.
void Trainer::load_best() {
  const std::optional<BestEvaluation>& best = progress_.best_saved;
  if (!best) {
    log::warn(
        "load_best_model_at_end finds no checkpoint of an evaluation with a finite loss: the "
        "result has the last weights");
    return;
  }
  if (progress_.best && progress_.best->loss < best->loss) {
    log::warn(
        fmt::format("the best evaluation, after update {} (loss {:.4f}), was not saved: the "
                    "best of the saved ones is loaded\n  --save_strategy best saves every "
                    "best one; save_steps equal to eval_steps saves all.",
                    progress_.best->update,
                    progress_.best->loss));
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
