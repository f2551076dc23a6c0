#pragma once

#include <chrono>
#include <csignal>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/worker_status.h"
#include <sys/types.h>

// The ranks that this process has started, from their start to their end.
namespace zeroth::cli {

// Blocks the signals that a front answers while it lives, so that they are taken one by one and
// none is missed.
class WatchedSignals {
 public:
  WatchedSignals();
  WatchedSignals(const WatchedSignals&) = delete;
  WatchedSignals& operator=(const WatchedSignals&) = delete;
  ~WatchedSignals();

  void restore() const noexcept;
  // The next signal, or 0 if none came in time.
  [[nodiscard]] int next(std::chrono::milliseconds at_most) const;

 private:
  sigset_t signals_;
  sigset_t before_{};
};

// One rank's process.
struct Child {
  pid_t process = 0;
  std::int64_t rank = 0;
  WorkerStatus status;
  std::optional<int> wait_status;  // how it ended, as waitpid(2) says
  bool put_down = false;           // by us, because of another
};

struct Watched {
  std::int64_t world_size = 1;
  bool of_user = false;  // a program of the user's, not the worker
};

// Blocks until all have ended, and tells people why they did if they failed: the rank whose failure
// ended the run last and in whole, the others in one line before it. Returns the exit code to end
// with. SIGINT, SIGTERM and SIGUSR1 are handed on, once per request.
[[nodiscard]] int watch_ranks(std::vector<Child> children,
                              const Watched& watched,
                              const WatchedSignals& signals);

}  // namespace zeroth::cli
