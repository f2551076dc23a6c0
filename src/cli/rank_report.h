#pragma once

#include <cstdint>
#include <vector>

#include "cli/rank_watch.h"

namespace zeroth::cli {

struct RunEnd {
  std::vector<const Child*> failed;  // in the order in which they ended; none: success
  std::int64_t started = 1;          // ranks that this process has started
  std::int64_t world_size = 1;
  bool asked_to_stop = false;  // by a signal that was handed on: the workers answer it themselves
  bool of_user = false;        // the ranks run a program of the user's
};

// Tells people why the run ended: what the other ranks met in a line, then the failure that ended
// the run, last and in whole. Returns the exit code.
[[nodiscard]] int report_end(const RunEnd& end);

}  // namespace zeroth::cli
