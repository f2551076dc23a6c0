#include "cli/rank_watch.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "cli/rank_report.h"
#include <sys/wait.h>

namespace zeroth::cli {
namespace {

using Clock = std::chrono::steady_clock;

// Tools such as timeout(1) signal a process and then its group: one request, not two.
constexpr std::chrono::milliseconds kOneRequest{300};
constexpr std::chrono::milliseconds kPoll{500};
// Ranks that wait for one that failed notice within a fraction of a second; one that computes would
// go on for nothing.
constexpr std::chrono::seconds kPatience{2};

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGTSTP, SIGCONT}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

class Watch {
 public:
  explicit Watch(std::vector<Child> children) : children_(std::move(children)) {}

  void until_ended(const WatchedSignals& signals) {
    while (std::any_of(children_.begin(), children_.end(), [](const Child& child) {
      return !child.wait_status;
    })) {
      const int signal = signals.next(kPoll);
      if (signal == SIGTSTP) {
        stop_all();
      } else if (signal != 0 && signal != SIGCHLD) {
        hand_on(signal);
      }
      collect();
      end_stragglers();
    }
  }

  // In the order in which they ended.
  [[nodiscard]] const std::vector<const Child*>& failed() const noexcept { return failed_; }

  [[nodiscard]] bool was_asked_to_stop() const noexcept { return asked_to_stop_; }

 private:
  void collect() {
    for (Child& child : children_) {
      int status = 0;
      if (child.wait_status || ::waitpid(child.process, &status, WNOHANG) != child.process) {
        continue;
      }
      child.wait_status = status;
      if (status != 0) {
        failed_at_ = failed_.empty() ? Clock::now() : failed_at_;
        failed_.push_back(&child);
      }
    }
  }

  void end_stragglers() {
    if (failed_.empty() || Clock::now() - failed_at_ < kPatience) {
      return;
    }
    for (Child& child : children_) {
      if (!child.wait_status) {
        child.put_down = true;
        ::kill(child.process, SIGKILL);
      }
    }
  }

  void stop_all() const {
    send(SIGSTOP);
    ::raise(SIGSTOP);  // goes on when somebody sends SIGCONT, which is then handed on
  }

  void send(int signal) const {
    for (const Child& child : children_) {
      if (!child.wait_status) {
        ::kill(child.process, signal);
      }
    }
  }

  void hand_on(int signal) {
    const auto now = Clock::now();
    const bool same_request = signal == last_signal_ && now - last_time_ < kOneRequest;
    if (!same_request) {
      send(signal);
    }
    asked_to_stop_ = asked_to_stop_ || signal == SIGINT || signal == SIGTERM;
    last_signal_ = signal;
    last_time_ = now;
  }

  std::vector<Child> children_;
  std::vector<const Child*> failed_;
  Clock::time_point failed_at_{};
  bool asked_to_stop_ = false;
  int last_signal_ = 0;
  Clock::time_point last_time_{};
};

}  // namespace

WatchedSignals::WatchedSignals() : signals_(watched_signals()) {
  ::sigprocmask(SIG_BLOCK, &signals_, &before_);
}

WatchedSignals::~WatchedSignals() {
  restore();
}

void WatchedSignals::restore() const noexcept {
  ::sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int WatchedSignals::next(std::chrono::milliseconds at_most) const {
  const timespec wait{.tv_sec = at_most.count() / 1000,
                      .tv_nsec = at_most.count() % 1000 * 1'000'000};
  return std::max(0, ::sigtimedwait(&signals_, nullptr, &wait));
}

int watch_ranks(std::vector<Child> children,
                const Watched& watched,
                const WatchedSignals& signals) {
  const auto started = static_cast<std::int64_t>(children.size());
  Watch watch(std::move(children));
  watch.until_ended(signals);
  return report_end({.failed = watch.failed(),
                     .started = started,
                     .world_size = watched.world_size,
                     .asked_to_stop = watch.was_asked_to_stop(),
                     .of_user = watched.of_user});
}

}  // namespace zeroth::cli
