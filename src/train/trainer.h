#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include "config/run_config.h"
#include "data/example.h"
#include "data/sampler.h"
#include "engine/engine.h"
#include "observe/progress.h"
#include "observe/records.h"
#include "train/plan.h"
#include "train/skip_watch.h"

namespace zeroth::train {

// The micro-batch of this rank that needed the most room.
struct MicroBatchSize {
  std::int64_t rows = 0;
  std::int64_t tokens = 0;   // of a row, padding included
  std::int64_t targets = 0;  // of all rows
};

struct TrainSummary {
  std::int64_t updates = 0;
  std::int64_t skipped = 0;  // attempts that made no update
  std::int64_t rows = 0;
  std::int64_t tokens = 0;
  std::int64_t target_tokens = 0;
  double seconds = 0;
  double train_loss = 0;  // token-weighted over all updates
  double last_loss = 0;   // of the last update
  std::optional<double> eval_loss;
  offload::Traffic offloaded;  // from and to files, by all ranks
  MicroBatchSize largest;
};

// The loop: batches -> engine -> evaluate -> observe. Everything it is given must outlive it.
class Trainer {
 public:
  Trainer(const config::RunConfig& config,
          const TrainPlan& plan,
          engine::Engine& engine,
          const data::Dataset& train,
          const data::Dataset* validation,
          text::TokenId pad_id);

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

  [[nodiscard]] Window train_window(std::int64_t attempt);
  [[nodiscard]] offload::Traffic take_traffic();
  void note_size(const models::TokenBatch& batch);
  void observe(const Window& window, std::int64_t attempt);
  void warn_of_skips(const engine::StepReport& report);
  [[nodiscard]] std::string why_skipped(const engine::StepReport& report) const;
  void evaluate_if_due(std::int64_t attempt);
  void evaluate_now();
  void record(const Json& record);
  void record_micro_step(std::int64_t index, const engine::Loss& loss, std::int64_t window_rows);
  [[nodiscard]] double epoch_after(std::int64_t attempt) const;

  const config::RunConfig& config_;
  const TrainPlan& plan_;
  engine::Engine& engine_;
  const data::Dataset& train_;
  const data::Dataset* validation_;
  text::TokenId pad_id_;
  data::Sampler sampler_;
  std::optional<observe::Records> records_;  // on rank 0
  observe::ProgressLine progress_;
  TrainSummary summary_;
  engine::Loss total_loss_;
  double epoch_ = 0;
  SkipWatch skip_watch_;
  offload::Traffic counted_traffic_;  // of this rank, of the windows that have been told
  std::int64_t evaluated_at_ = -1;    // updates made at the last evaluation
};

}  // namespace zeroth::train
