#pragma once

#include <vector>

#include "models/unit.h"
#include "optim/optimizer.h"
#include "shard/flat_layout.h"

namespace zeroth::zero {

// The stretches of `range` that belong to parameters, one for each, counted from range.begin;
// padding is in none.
[[nodiscard]] std::vector<optim::Segment> segments_of(
    const std::vector<models::Parameter*>& parameters,
    const shard::FlatLayout& layout,
    shard::Range range);

// Neighbours that are treated alike as one.
[[nodiscard]] std::vector<optim::Segment> merged(const std::vector<optim::Segment>& segments);

}  // namespace zeroth::zero
