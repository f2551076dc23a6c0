#pragma once

#include <vector>

#include "config/given.h"
#include "config/run_config.h"

namespace zeroth::config {

// The scheduler block of a ds_config.json describes one schedule. Where a stronger source chooses
// another, the whole block gives way: half of it would shape a schedule that it was not written
// for. Takes its values (all but the type, which is overridden like any other) out of
// `gathered.given` and returns them, each with the reason.
[[nodiscard]] std::vector<IdleSetting> take_replaced_blocks(Gathered& gathered);

}  // namespace zeroth::config
