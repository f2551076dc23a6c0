#pragma once

#include <functional>
#include <vector>

#include "models/unit.h"
#include "shard/flat_layout.h"

#include <ATen/core/Tensor.h>

namespace zeroth::zero {

// Reads the fp32 values that elements of a layout begin with; padding is zero. take(part, values)
// gets them part by part, in order, so that little of a model's file is in memory at one time.
void read_first_values(const std::vector<models::Parameter*>& parameters,
                       const shard::FlatLayout& layout,
                       shard::Range range,
                       const std::function<void(shard::Range, const at::Tensor&)>& take);

}  // namespace zeroth::zero
