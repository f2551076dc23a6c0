#pragma once

#include <functional>
#include <optional>

#include "data/example.h"
#include "engine/engine.h"

namespace zeroth::train {

// The token-weighted loss over all rows of `dataset`, `batch_rows` at a time on each rank; each row
// counts once, and the cut changes nothing but rounding. Collective: all ranks get the whole.
// Nothing where `broken_off`, which is asked by all ranks together after every batch but the last,
// says so.
[[nodiscard]] std::optional<engine::Loss> evaluate(engine::Engine& engine,
                                                   const data::Dataset& dataset,
                                                   std::int64_t batch_rows,
                                                   text::TokenId pad_id,
                                                   const std::function<bool()>& broken_off);
[[nodiscard]] engine::Loss evaluate(engine::Engine& engine,
                                    const data::Dataset& dataset,
                                    std::int64_t batch_rows,
                                    text::TokenId pad_id);

}  // namespace zeroth::train
