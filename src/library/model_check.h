#pragma once

#include <map>
#include <string>

#include "zeroth/model.h"

// A program's description of its model, before anything is made of it.
namespace zeroth::library {

// Further names of a parameter that one unit lists several times -> the first.
using Aliases = std::map<std::string, std::string>;

// kModel for what cannot be trained: no units, no loss, a name twice, a parameter that is in two
// units, a tensor that no engine takes. A parameter that a unit lists twice stays once.
[[nodiscard]] Aliases checked(Model& model);

}  // namespace zeroth::library
