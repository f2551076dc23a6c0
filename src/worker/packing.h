#pragma once

#include "comm/communicator.h"
#include "config/run_config.h"
#include "kernels/packed_weight.h"
#include "models/model.h"
#include "plan/input.h"

namespace zeroth::worker {

// `input` with what is packed in this run: nothing where this processor has no layout of its own,
// and as far as what is free now has room. All ranks have the same. Says it, on rank 0. Collective.
[[nodiscard]] plan::PlanInput settled(plan::PlanInput input,
                                      at::ScalarType dtype,
                                      comm::Communicator& comm);

[[nodiscard]] kernels::Packing packing_of(plan::PackedFor packed) noexcept;

// Of a run that only runs forwards: for forward, where the weights packed and as they are take at
// most half of what is free. Collective.
[[nodiscard]] kernels::Packing inference_packing(const config::RunConfig& config,
                                                 const models::Model& model,
                                                 at::ScalarType dtype,
                                                 comm::Communicator& comm);

}  // namespace zeroth::worker
