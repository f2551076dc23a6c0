#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "arithmetic/schedule.h"
#include "config/problems.h"
#include "config/run_config.h"
#include "config/schema.h"

namespace zeroth::config {

// The schedule of a run of that many updates (0: not known yet).
[[nodiscard]] arithmetic::Schedule schedule_of(const RunConfig& config, std::int64_t total_updates);

// What the schedule's parameters must be among themselves; a problem names the one and its source.
void check_schedule(const Values& values, const RunConfig& config, Problems& problems);

// Rates at the first update, the end of the warm-up, the middle and the last, for people.
[[nodiscard]] std::string rates_line(const arithmetic::Schedule& schedule,
                                     std::int64_t total_updates);

}  // namespace zeroth::config
