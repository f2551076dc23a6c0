#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/given.h"
#include "config/problems.h"
#include "config/schema.h"

namespace zeroth::config {

// Reads "--key value", "--key=value", "key=value", "--switch" and "--no_switch" into `gathered`;
// dashes and underscores in names are alike, and no name is abbreviated. Every fault (unknown
// option, wrong type, out of range, missing value) goes to `problems`. Returns the recipe file: the
// bare word that ends in .yaml, .yml or .json; empty without one.
[[nodiscard]] std::string read_command_line(Command command,
                                            std::span<const std::string> arguments,
                                            Gathered& gathered,
                                            Problems& problems);

}  // namespace zeroth::config
