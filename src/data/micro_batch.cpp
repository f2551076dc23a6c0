#include <algorithm>

#include "base/check.h"
#include "data/sampler.h"

namespace zeroth::data {
namespace {

void append_padded(std::vector<std::int64_t>& matrix,
                   std::span<const text::TokenId> row,
                   std::int64_t row_tokens,
                   std::int64_t padding) {
  matrix.insert(matrix.end(), row.begin(), row.end());
  matrix.insert(matrix.end(), static_cast<std::size_t>(row_tokens) - row.size(), padding);
}

// For each place of a row: where the part begins that it belongs to. Padding is a part of its own.
void append_begins(std::vector<std::int64_t>& matrix,
                   const Example& example,
                   std::int64_t row_tokens) {
  const std::size_t row = matrix.size();
  const auto length = static_cast<std::int64_t>(example.input_ids.size());
  matrix.resize(row + static_cast<std::size_t>(row_tokens), 0);
  std::vector<std::int64_t> begins = example.begins;
  begins.push_back(length);
  for (const std::int64_t begin : begins) {
    std::fill(matrix.begin() + static_cast<std::ptrdiff_t>(row) + begin, matrix.end(), begin);
  }
}

}  // namespace

MicroBatch make_micro_batch(std::span<const Example* const> examples, text::TokenId pad_id) {
  MicroBatch batch;
  batch.num_rows = static_cast<std::int64_t>(examples.size());
  for (const Example* example : examples) {
    ZEROTH_CHECK_EQ(example->input_ids.size(), example->labels.size(), "row {}", example->row);
    batch.lengths.push_back(static_cast<std::int64_t>(example->input_ids.size()));
    batch.rows.push_back(example->row);
    batch.num_targets += example->num_targets();
    batch.row_tokens = std::max(batch.row_tokens, batch.lengths.back());
  }
  batch.input_ids.reserve(static_cast<std::size_t>(batch.num_rows * batch.row_tokens));
  batch.labels.reserve(batch.input_ids.capacity());
  for (const Example* example : examples) {
    append_padded(batch.input_ids, example->input_ids, batch.row_tokens, pad_id);
    append_padded(batch.labels, example->labels, batch.row_tokens, kIgnoreLabel);
  }
  const auto is_joined = [](const Example* example) { return example->begins.size() > 1; };
  if (std::any_of(examples.begin(), examples.end(), is_joined)) {
    for (const Example* example : examples) {
      append_begins(batch.begins, *example, batch.row_tokens);
    }
  }
  return batch;
}

// All ranks get the same number of micro-steps, since every rank takes part in every collective
// (case D21).
std::vector<std::vector<std::int64_t>> cut_into_micro_steps(
    std::span<const std::int64_t> global_batch,
    std::int64_t micro_batch_rows,
    std::int64_t dp,
    std::int64_t dp_rank) {
  ZEROTH_CHECK(
      micro_batch_rows >= 1 && dp >= 1, "micro batch {} rows, dp {}", micro_batch_rows, dp);
  ZEROTH_CHECK(dp_rank >= 0 && dp_rank < dp, "rank {} of {}", dp_rank, dp);
  const auto size = static_cast<std::int64_t>(global_batch.size());
  std::vector<std::vector<std::int64_t>> micro_steps;
  for (std::int64_t step_begin = 0; step_begin < size; step_begin += micro_batch_rows * dp) {
    const std::int64_t begin = std::min(step_begin + dp_rank * micro_batch_rows, size);
    const std::int64_t end = std::min(begin + micro_batch_rows, size);
    micro_steps.emplace_back(global_batch.begin() + begin, global_batch.begin() + end);
  }
  return micro_steps;
}

}  // namespace zeroth::data
