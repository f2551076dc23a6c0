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

// A value as its source spells it: "zero_optimization.stage 2 (ds.json:3)".
[[nodiscard]] std::string spelled_with_source(const Values& values, const std::string& key);

// The launchers' variables that tell how many ranks there are.
[[nodiscard]] const std::vector<std::string>& launch_variables();

}  // namespace zeroth::config
