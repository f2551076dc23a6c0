#include "train/batches.h"

#include <ATen/ops/from_blob.h>

namespace zeroth::train {
namespace {

at::Tensor matrix(std::vector<std::int64_t>& values, std::int64_t rows, std::int64_t columns) {
  return at::from_blob(values.data(), {rows, columns}, at::TensorOptions(at::kLong)).clone();
}

}  // namespace

models::TokenBatch token_batch(const data::Dataset& dataset,
                               std::span<const std::int64_t> rows,
                               text::TokenId pad_id) {
  if (rows.empty()) {
    return {};  // a rank that has no rows in this micro-step
  }
  std::vector<const data::Example*> examples;
  for (const std::int64_t row : rows) {
    examples.push_back(&dataset.examples.at(static_cast<std::size_t>(row)));
  }
  data::MicroBatch micro = data::make_micro_batch(examples, pad_id);
  return {.ids_BT = matrix(micro.input_ids, micro.num_rows, micro.row_tokens),
          .labels_BT = matrix(micro.labels, micro.num_rows, micro.row_tokens),
          .rows = micro.rows,
          .begins_BT = micro.begins.empty()
                           ? at::Tensor()
                           : matrix(micro.begins, micro.num_rows, micro.row_tokens),
          .num_targets = micro.num_targets};
}

std::int64_t num_tokens(const data::Dataset& dataset, std::span<const std::int64_t> rows) {
  std::int64_t tokens = 0;
  for (const std::int64_t row : rows) {
    tokens += static_cast<std::int64_t>(
        dataset.examples.at(static_cast<std::size_t>(row)).input_ids.size());
  }
  return tokens;
}

}  // namespace zeroth::train
