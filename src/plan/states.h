#pragma once

#include <cstdint>
#include <vector>

#include "plan/bytes.h"
#include "plan/units.h"

// Model states of one rank: what stays from update to update (Rajbhandari et al., "ZeRO", 2020,
// section 3), and the buffers that sharding needs.
namespace zeroth::plan {

// What of a run is kept in shards, and how often gradients are reduced.
struct Sharding {
  bool optimizer = false;
  bool gradients = false;
  bool parameters = false;
  bool reduces_every_micro_step = false;
};

[[nodiscard]] Sharding sharding_of(const PlanInput& input);

// Whether the sums that a rank keeps for itself go to files with the optimizer's state.
[[nodiscard]] bool gradients_in_files(const PlanInput& input);

// Trainable elements of each unit, padded.
[[nodiscard]] std::vector<std::int64_t> padded_numels(const ModelSize& model);

// Units whose parameters others read as well.
[[nodiscard]] std::int64_t num_lenders(const ModelSize& model);

struct StateBytes {
  Bytes weights;  // trainable and frozen
  Bytes gradients;
  Bytes master;
  Bytes moments;

  [[nodiscard]] Bytes total() const { return weights + gradients + master + moments; }
};

[[nodiscard]] Bytes packed_bytes(const PlanInput& input, const ModelSize& model);

[[nodiscard]] StateBytes states_of(const PlanInput& input, const ModelSize& model);

// Stage 3: slots for the full units in use.
[[nodiscard]] Bytes gather_window(const PlanInput& input, const ModelSize& model);

// Slots for one micro-step's gradients on their way into shards.
[[nodiscard]] Bytes gradient_slots(const PlanInput& input, const ModelSize& model);

// Angles, first keys, token ids and labels of a micro-batch.
[[nodiscard]] Bytes row_buffers(const PlanInput& input);

}  // namespace zeroth::plan
