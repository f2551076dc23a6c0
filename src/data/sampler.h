#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/example.h"

namespace zeroth::data {

// Where in the rows a global batch begins. Row 0 of an epoch is the end of the one before.
struct RowPosition {
  std::int64_t epoch = 0;
  std::int64_t row = 0;  // in the epoch's order

  friend bool operator==(const RowPosition&, const RowPosition&) = default;
};

// A global batch and the place where it begins: what went before may have been cut into other
// batches.
struct SamplerStart {
  std::int64_t update = 0;
  RowPosition at;
};

// Which rows form which global batch. The order depends on (seed, epoch) and the number of rows
// alone, never on ranks, micro-batches or accumulation; each row comes exactly once per epoch. The
// last global batch of an epoch may be smaller.
class Sampler {
 public:
  // `shuffle` false keeps the order of the files. global_batch_rows >= 1, num_rows >= 1.
  // A start beyond the rows of its epoch is that of the next one.
  Sampler(std::int64_t num_rows,
          std::int64_t global_batch_rows,
          std::uint64_t seed,
          bool shuffle,
          const SamplerStart& start = {});

  [[nodiscard]] std::int64_t updates_per_epoch() const noexcept;  // rounded up
  // Where global batch `update` (counted from 0 over all epochs, the start's or a later one)
  // begins.
  [[nodiscard]] RowPosition position_of(std::int64_t update) const;
  // Its row indices.
  [[nodiscard]] std::vector<std::int64_t> global_batch(std::int64_t update);

 private:
  void shuffle_epoch(std::int64_t epoch);

  std::int64_t num_rows_;
  std::int64_t global_batch_rows_;
  std::uint64_t seed_;
  bool shuffle_;
  SamplerStart start_;
  std::int64_t epoch_ = -1;
  std::vector<std::int64_t> order_;
};

// One rank's rows of one micro-step, padded on the right to the longest: what a forward takes.
// Matrices are row-major [num_rows, row_tokens].
struct MicroBatch {
  std::int64_t num_rows = 0;
  std::int64_t row_tokens = 0;
  std::vector<std::int64_t> input_ids;  // pad_id beyond a row's end
  std::vector<std::int64_t> labels;     // kIgnoreLabel beyond a row's end; not shifted
  std::vector<std::int64_t> lengths;    // real tokens of each row
  std::vector<std::int64_t> rows;       // Example::row of each row
  // Where the row begins that a place belongs to; empty where no row was joined from several.
  std::vector<std::int64_t> begins;
  std::int64_t num_targets = 0;
};

[[nodiscard]] MicroBatch make_micro_batch(std::span<const Example* const> examples,
                                          text::TokenId pad_id);

// Cuts a global batch's rows into micro-steps for one of `dp` ranks: micro-step k of rank r takes
// rows
// [(k * dp + r) * micro, ...) of the global batch, clipped to its size. A micro-step may be empty
// on late ranks.
[[nodiscard]] std::vector<std::vector<std::int64_t>> cut_into_micro_steps(
    std::span<const std::int64_t> global_batch,
    std::int64_t micro_batch_rows,
    std::int64_t dp,
    std::int64_t dp_rank);

}  // namespace zeroth::data
