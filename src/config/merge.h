#pragma once

#include "config/given.h"

namespace zeroth::config {

// Every declared key at its default.
[[nodiscard]] Values defaults_of(Command command);

// The strongest source of each key wins; what it changes is kept as overridden. Sources of one
// strength that differ are problems: two files in one message that names every such pair, one file
// or the command line against itself in a message of its own.
void merge(const Gathered& gathered, Values& values, Problems& problems);

}  // namespace zeroth::config
