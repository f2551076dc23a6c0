#pragma once

#include <string>

#include "plan/needs.h"

// Weights that do not train are packed as far as memory has room.
namespace zeroth::plan {

// What a rank of `input` may hold: its equal share of this machine's memory.
[[nodiscard]] Bytes share_of_machine(const PlanInput& input);

// `input` with what is packed: where it may choose, for both products if the plan fits into
// `limit`, else for forward, else for nothing.
[[nodiscard]] PlanInput settle_packing(PlanInput input, Bytes limit);

// What is packed and why, for the start of a run; of a settled input. Empty where nothing could be.
[[nodiscard]] std::string packing_line(const PlanInput& input, Bytes limit);

}  // namespace zeroth::plan
