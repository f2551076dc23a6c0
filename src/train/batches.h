#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/example.h"
#include "data/sampler.h"
#include "models/unit.h"

namespace zeroth::train {

// The rows of `dataset` with these indices as a batch for a forward; none gives an empty batch.
[[nodiscard]] models::TokenBatch token_batch(const data::Dataset& dataset,
                                             std::span<const std::int64_t> rows,
                                             text::TokenId pad_id);

// Tokens of the rows, padding not counted.
[[nodiscard]] std::int64_t num_tokens(const data::Dataset& dataset,
                                      std::span<const std::int64_t> rows);

}  // namespace zeroth::train
