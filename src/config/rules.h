#pragma once

#include <map>
#include <string>

#include "config/problems.h"
#include "config/schema.h"

namespace zeroth::config {

// Variables of the environment by name, as far as they matter here.
using Environment = std::map<std::string, std::string>;

struct Placement;

// What must hold between the values of several keys, and with the launcher's variables. A `check`
// may leave out what a run requires.
void check_rules(const Values& values, const Placement& place, bool only_check, Problems& problems);

// The launchers' variables that tell how many ranks there are.
[[nodiscard]] const std::vector<std::string>& launch_variables();

}  // namespace zeroth::config
