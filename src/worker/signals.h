#pragma once

#include "config/run_config.h"

// What a signal does to a worker. Nothing can be saved on the way yet: SIGINT and SIGTERM end the
// run at once and say what is lost (exit 130, 143); SIGUSR1, which would mean "save and go on", is
// answered and the run goes on.
namespace zeroth::worker {

// `speaks`: this rank tells people; the others end without a word.
void answer_signals(config::Command command, bool speaks);

}  // namespace zeroth::worker
