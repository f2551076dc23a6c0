#pragma once

#include "config/given.h"
#include "config/problems.h"
#include "config/run_config.h"

namespace zeroth::config {

// Sorts every key into in force, without effect, planned or refused, into `config` and `problems`,
// and says in `account` what became of each written value: none is left over. `asked` is the
// command as typed: one that speaks of a run has keys of its own.
void classify(
    Command asked, const Values& values, Gathered& gathered, RunConfig& config, Problems& problems);

}  // namespace zeroth::config
