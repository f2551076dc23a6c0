#pragma once

#include "config/run_config.h"

// What a signal does to a worker. Nothing can be saved on the way yet: SIGINT and SIGTERM end the
// run at once and say what is lost (exit 130, 143); SIGUSR1, which would mean "save and go on", is
// answered and the run goes on.
namespace zeroth::worker {

void answer_signals(config::Command command);

}  // namespace zeroth::worker
