#include "train/evaluate.h"

#include <algorithm>
#include <numeric>

#include "train/batches.h"

namespace zeroth::train {

std::optional<engine::Loss> evaluate(engine::Engine& engine,
                                     const data::Dataset& dataset,
                                     std::int64_t batch_rows,
                                     text::TokenId pad_id,
                                     const std::function<bool()>& broken_off) {
  engine::Loss total;
  const auto num_rows = static_cast<std::int64_t>(dataset.examples.size());
  const std::int64_t rows_a_round = batch_rows * engine.comm().size();
  for (std::int64_t first = 0; first < num_rows; first += rows_a_round) {
    const std::int64_t begin = std::min(num_rows, first + engine.comm().rank() * batch_rows);
    std::vector<std::int64_t> rows(
        static_cast<std::size_t>(std::min(batch_rows, num_rows - begin)));
    std::iota(rows.begin(), rows.end(), begin);
    const engine::Loss loss = engine.evaluate(token_batch(dataset, rows, pad_id));
    total.sum += loss.sum;
    total.weight += loss.weight;
    if (first + rows_a_round < num_rows && broken_off()) {
      return std::nullopt;
    }
  }
  return engine.sum_over_ranks(total);
}

engine::Loss evaluate(engine::Engine& engine,
                      const data::Dataset& dataset,
                      std::int64_t batch_rows,
                      text::TokenId pad_id) {
  return *evaluate(engine, dataset, batch_rows, pad_id, [] { return false; });
}

}  // namespace zeroth::train
