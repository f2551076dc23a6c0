#pragma once

#include <cstdint>
#include <optional>

// How often a run updates.
namespace zeroth::arithmetic {

// Windows of `global_rows` rows (1 or more) in an epoch; the last, incomplete one is trained.
[[nodiscard]] std::int64_t updates_per_epoch(std::int64_t rows, std::int64_t global_rows);

// Rows of an epoch's last window: global_rows when it is full, 0 when there are no rows.
[[nodiscard]] std::int64_t last_window_rows(std::int64_t rows, std::int64_t global_rows);

// ceil(epochs x updates_per_epoch) as Transformers computes it, in doubles, and at least 1. An
// Error where that is no count of updates (not finite, negative, over 2^53).
[[nodiscard]] std::int64_t updates_of_epochs(double epochs, std::int64_t updates_per_epoch);

struct RunRequest {
  std::int64_t rows = 0;         // of the training data
  std::int64_t global_rows = 1;  // rows of one update: train_batch_size
  double num_train_epochs = 3;
  std::int64_t max_steps = -1;  // > 0 beats the epochs
};

struct RunLength {
  std::int64_t updates_per_epoch = 0;
  std::int64_t last_window_rows = 0;
  std::int64_t updates_by_epochs = 0;                // what num_train_epochs asks for
  std::optional<std::int64_t> updates_by_max_steps;  // what max_steps asks for, where it is given
  std::int64_t total_updates = 0;                    // what is done

  // Both were asked for and differ: show both.
  [[nodiscard]] bool max_steps_differs() const noexcept {
    return updates_by_max_steps && *updates_by_max_steps != updates_by_epochs;
  }

  friend bool operator==(const RunLength&, const RunLength&) = default;
};

[[nodiscard]] RunLength run_length(const RunRequest& request);

// warmup_steps where it is > 0, else ceil(total x ratio) as Transformers computes it.
[[nodiscard]] std::int64_t warmup_updates(std::int64_t warmup_steps,
                                          double warmup_ratio,
                                          std::int64_t total_updates);

}  // namespace zeroth::arithmetic
