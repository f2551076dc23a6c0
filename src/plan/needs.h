#pragma once

#include "plan/activations.h"
#include "plan/states.h"

namespace zeroth::plan {

// What one rank holds on its device at the moment of the most, by purpose. The sum is the peak.
struct DeviceBytes {
  StateBytes states;
  Bytes activations;
  Bytes logits;
  Bytes buffers;
  Bytes gather_window;

  [[nodiscard]] Bytes total() const {
    return states.total() + activations + logits + buffers + gather_window;
  }
};

// One rank's needs, everywhere.
struct Needs {
  DeviceBytes device;
  Bytes host;   // what is offloaded there, and the buffers of what lies in files
  Bytes files;  // what is offloaded to files
  bool evaluation_decides = false;  // the most is held while evaluating, not while training
};

[[nodiscard]] Needs needs_of(const PlanInput& input, const ModelSize& model);

// After the last update the result is collected unit by unit, in fp32, beside a rank's own states.
// Reading the model needs nothing beyond them: each rank reads what it keeps.
[[nodiscard]] Bytes while_saving(const PlanInput& input, const ModelSize& model);

}  // namespace zeroth::plan
