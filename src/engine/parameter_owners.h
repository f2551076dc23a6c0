#pragma once

#include <cstdint>
#include <vector>

#include "models/unit.h"

// Which unit each parameter belongs to.
namespace zeroth::engine {

// kModel naming a parameter that two units hold, by name or by storage: only a unit that says it
// borrows may read another's.
void refuse_shared_parameters(const models::UnitList& units);

// For each unit the units whose parameters it borrows, each once.
[[nodiscard]] std::vector<std::vector<std::size_t>> lenders_of(const models::UnitList& units);

// How many units others borrow trainable parameters from.
[[nodiscard]] std::int64_t num_lenders(const std::vector<std::vector<std::size_t>>& lenders);

// Elements of each unit's trainable parameters, padded for `num_shards` shards.
[[nodiscard]] std::vector<std::int64_t> padded_numels(const models::UnitList& units,
                                                      std::int64_t num_shards);

}  // namespace zeroth::engine
