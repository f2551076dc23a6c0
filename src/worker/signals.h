#pragma once

#include "config/run_config.h"
#include "train/trainer.h"

// What a signal does to a worker. While `train` makes updates, SIGINT and SIGTERM are answered by a
// checkpoint after the update under way, SIGUSR1 by one and going on; a second SIGINT or SIGTERM,
// and the first anywhere else, ends the process at once and says what is lost (exit 130, 143).
namespace zeroth::worker {

// `speaks`: this rank tells people; the others end without a word.
void answer_signals(config::Command command, bool speaks);

// While it lives, requests are kept for take_request().
class KeptRequests {
 public:
  KeptRequests();
  ~KeptRequests();
  KeptRequests(const KeptRequests&) = delete;
  KeptRequests& operator=(const KeptRequests&) = delete;

  // What was asked since the last call; a request to stop stays.
  [[nodiscard]] train::Request take();
};

}  // namespace zeroth::worker
