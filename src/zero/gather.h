#pragma once

#include <span>
#include <string>

#include "comm/communicator.h"

#include <ATen/core/Tensor.h>

namespace zeroth::zero {

// The ranks' equal parts end to end: a copy in memory of this rank alone. Collective.
[[nodiscard]] at::Tensor gather_floats(comm::Communicator& comm,
                                       const std::string& label,
                                       std::span<const float> own);

}  // namespace zeroth::zero
