#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "config/run_config.h"
#include "data/example.h"
#include "data/sampler.h"
#include "engine/engine.h"
#include "observe/progress.h"
#include "observe/records.h"
#include "train/checkpoint_save.h"
#include "train/plan.h"
#include "train/progress.h"
#include "train/result.h"
#include "train/skip_watch.h"

namespace zeroth::train {

// The micro-batch of this rank that needed the most room.
struct MicroBatchSize {
  std::int64_t rows = 0;
  std::int64_t tokens = 0;   // of a row, padding included
  std::int64_t targets = 0;  // of all rows
};

// What people ask of a running process by signals.
struct Request {
  bool save = false;
  int stop = 0;  // the signal; 0: go on
};

struct TrainSummary {
  Progress progress;
  double train_loss = 0;  // token-weighted over all updates
  MicroBatchSize largest;
  int stopped_by = 0;                         // the signal; 0: the run came to its end
  std::filesystem::path checkpoint;           // the last that was written; empty: none
  std::int64_t num_checkpoints = 0;           // written by this process
  std::optional<BestEvaluation> best_loaded;  // the weights are this evaluation's, not the last
};

// What a trainer trains with. Borrowed.
struct TrainInputs {
  const TrainPlan& plan;
  const data::Dataset& train;
  const data::Dataset* validation;  // nullptr: none
  text::TokenId pad_id;
  const Fingerprints& fingerprints;
};

// The loop: batches -> engine -> evaluate -> observe -> save. Everything it is given must outlive
// it.
class Trainer {
 public:
  // `start`: how far the run had come. `requests` gives what was asked since its last call.
  Trainer(const Trained& trained,
          const TrainInputs& inputs,
          Progress start,
          std::function<Request()> requests);

  [[nodiscard]] TrainSummary run();

 private:
  // What one update went through.
  struct Window {
    std::int64_t rows = 0;
    std::int64_t tokens = 0;
    std::int64_t micro_steps = 0;
    double seconds = 0;
    engine::StepReport report;
    offload::Traffic offloaded;  // by all ranks
  };

  [[nodiscard]] bool train_until_stopped();
  void continue_evaluation();
  [[nodiscard]] bool evaluate_at_the_end();
  void finish();
  [[nodiscard]] Window train_window(std::int64_t attempt);
  [[nodiscard]] offload::Traffic take_traffic();
  void note_size(const models::TokenBatch& batch);
  void count(const Window& window, std::int64_t attempt);
  void observe(const Window& window, std::int64_t attempt);
  void add_to_history(const engine::StepReport& report);
  void warn_of_skips(const engine::StepReport& report);
  [[nodiscard]] std::string why_skipped(const engine::StepReport& report) const;
  [[nodiscard]] bool evaluation_is_due() const;
  void evaluate_unless_stopped();
  void take_evaluation(const engine::Loss& loss, double seconds);
  void forget_best_of_other_rows();
  void forget_best_elsewhere();
  void take_requests();
  [[nodiscard]] bool save_is_due(const engine::StepReport& report) const;
  void note_saved_best();
  void save();
  void load_best();
  void record(const Json& record);
  void record_micro_step(std::int64_t index, const engine::Loss& loss, std::int64_t window_rows);
  [[nodiscard]] bool ends_epoch() const;
  [[nodiscard]] double epoch() const;  // how many have been gone through

  [[nodiscard]] std::int64_t updates() const noexcept { return progress_.engine.updates; }

  const Trained& trained_;
  const config::RunConfig& config_;
  const TrainInputs& inputs_;
  engine::Engine& engine_;
  std::function<Request()> requests_;
  data::Sampler sampler_;
  Progress progress_;
  std::optional<observe::Records> records_;  // on rank 0
  observe::ProgressLine line_;
  TrainSummary summary_;
  SkipWatch skip_watch_;
  offload::Traffic counted_traffic_;  // of this rank, of the windows that have been told
  std::int64_t saved_windows_ = -1;   // at the last checkpoint
  bool found_best_ = false;           // by the last evaluation, and not saved yet
  Request asked_;                     // by any rank, since the last checkpoint
};

}  // namespace zeroth::train
