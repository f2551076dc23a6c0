#pragma once

#include <string>

#include "plan/needs.h"

// Weights that do not train are packed as far as memory has room.
namespace zeroth::plan {

// What there is for it.
struct PackingRoom {
  Bytes rank;    // all that one rank may hold
  Bytes shared;  // what the ranks of a host can share, where they share frozen weights
};

// Of ranks that have so much each, all of which they could share.
[[nodiscard]] PackingRoom packing_room(const PlanInput& input, Bytes rank);

// `input` with what is packed: where it may choose, for both products if the plan fits into `room`,
// else for forward, else for nothing.
[[nodiscard]] PlanInput settle_packing(PlanInput input, const PackingRoom& room);
// The same where size_of(input) is at hand.
[[nodiscard]] PlanInput settle_packing(PlanInput input,
                                       const ModelSize& model,
                                       const PackingRoom& room);

// What is packed and why, for the start of a run; of a settled input. Empty where nothing could be.
[[nodiscard]] std::string packing_line(const PlanInput& input, const PackingRoom& room);

}  // namespace zeroth::plan
