#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/json.h"
#include "data/sampler.h"
#include "engine/engine.h"
#include "engine/options.h"
#include "offload/swap_space.h"

namespace zeroth::train {

// An evaluation with the lowest loss, and where its weights are.
struct BestEvaluation {
  double loss = 0;
  std::int64_t update = 0;
  std::string checkpoint;  // the folder's name; empty: its weights were not saved

  friend bool operator==(const BestEvaluation&, const BestEvaluation&) = default;
};

// How far a run has come: with the values of the units all that decides its next bit, and what its
// records and tables count.
struct Progress {
  std::int64_t windows = 0;   // finished, updates and skipped attempts
  data::RowPosition rows_at;  // where the next global batch begins
  engine::Engine::Position engine;
  std::int64_t skipped = 0;
  std::int64_t skipped_in_a_row = 0;
  std::int64_t rows = 0;
  std::int64_t tokens = 0;
  std::int64_t target_tokens = 0;
  double seconds = 0;
  engine::Loss total_loss;     // over all updates
  engine::Loss unlogged_loss;  // since the last entry of the history
  double last_loss = 0;
  offload::Traffic offloaded;
  std::int64_t evaluated_at = -1;  // updates made at the last evaluation
  std::optional<double> eval_loss;
  bool evaluation_due = false;               // after this update; the run was stopped before it
  std::uint64_t evaluated_rows = 0;          // fingerprint of the rows that the losses are of
  std::optional<BestEvaluation> best;        // of all evaluations
  std::optional<BestEvaluation> best_saved;  // of those whose weights are in a checkpoint
  std::int64_t metrics_bytes = 0;            // of metrics.jsonl
  Json log_history = Json::array();          // of trainer_state.json
};

// For records: what is not finite is null.
[[nodiscard]] Json finite_or_null(double value);

// Without the history, which has a file of its own. A loss that is not finite comes back as NaN.
[[nodiscard]] Json to_json(const Progress& progress);
// kCheckpoint where something is missing.
[[nodiscard]] Progress progress_from(const Json& json, const std::string& source);

}  // namespace zeroth::train
