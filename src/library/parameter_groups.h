#pragma once

#include <string>
#include <vector>

#include "models/unit.h"

#include "zeroth/engine.h"

namespace zeroth::library {

// What became of the groups, for people.
struct GroupsInForce {
  std::vector<std::string> lines;    // one for each group that acts
  std::vector<std::string> notices;  // groups that are ignored
};

// Gives every parameter what the first group that matches it says, and freezes what is frozen.
// kConfig for values that no group can have; kModel if nothing is left to train.
[[nodiscard]] GroupsInForce apply_groups(const std::vector<ParameterGroup>& groups,
                                         models::UnitList& units);

// Whether `name` is `pattern`, in which * stands for any characters, none too.
[[nodiscard]] bool matches(const std::string& pattern, const std::string& name);

}  // namespace zeroth::library
