#pragma once

#include "plan/bytes.h"
#include "plan/units.h"

namespace zeroth::plan {

// What one rank sends in one update, each kind by itself. A reduction or a gathering of X bytes
// costs a rank (N - 1) / N of X; ranks of one host copy as much through shared memory.
struct Traffic {
  Bytes gradients;  // reduced: once an update, or at every micro-step
  Bytes weights;    // updated ones brought to all (stages 1 and 2), or gathered for use (stage 3)

  [[nodiscard]] Bytes total() const { return gradients + weights; }
};

[[nodiscard]] Traffic traffic_of(const PlanInput& input, const ModelSize& model);

}  // namespace zeroth::plan
