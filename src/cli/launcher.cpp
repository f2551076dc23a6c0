#include "cli/launcher.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace zeroth::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kWorkerName = "zeroth-worker";
// Tools such as timeout(1) signal a process and then its group: one request, not two.
constexpr std::chrono::milliseconds kOneRequest{300};

[[noreturn]] void fail(const std::string& what) {
  throw Error(ErrorKind::kInternal, fmt::format("{}: {}", what, std::strerror(errno)));
}

// The configuration as a file that lives in memory only and that the worker inherits.
int config_descriptor(const config::RunConfig& config) {
  const std::string text = config::to_json(config).dump();
  const int descriptor = ::memfd_create("zeroth-config", 0);
  if (descriptor < 0) {
    fail("cannot make the worker's configuration");
  }
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = ::write(descriptor, text.data() + done, text.size() - done);
    if (written < 0) {
      fail("cannot write the worker's configuration");
    }
    done += static_cast<std::size_t>(written);
  }
  ::lseek(descriptor, 0, SEEK_SET);
  return descriptor;
}

sigset_t watched_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGUSR1, SIGCHLD, SIGTSTP, SIGCONT}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

// Blocks the watched signals while it lives, so that they are taken one by one and none is missed.
class WatchedSignals {
 public:
  WatchedSignals() { ::sigprocmask(SIG_BLOCK, &signals_, &before_); }

  WatchedSignals(const WatchedSignals&) = delete;
  WatchedSignals& operator=(const WatchedSignals&) = delete;

  ~WatchedSignals() { restore(); }

  void restore() const noexcept { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

  // The next signal, or 0 if none came in time.
  [[nodiscard]] int next(std::chrono::milliseconds at_most) const {
    const timespec wait{.tv_sec = at_most.count() / 1000,
                        .tv_nsec = at_most.count() % 1000 * 1'000'000};
    return std::max(0, ::sigtimedwait(&signals_, nullptr, &wait));
  }

 private:
  sigset_t signals_ = watched_signals();
  sigset_t before_{};
};

// OpenMP's threads wait by spinning, which on a machine that others use as well costs the work of a
// whole core (a training run was seen to take 15 times as long). A short spin, then sleep, unless
// the user decides.
void limit_spinning() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) {
    ::setenv("GOMP_SPINCOUNT", "10000", /*overwrite=*/0);
  }
}

// Runs in the child alone. A group of its own, so that the terminal's Ctrl-C reaches the worker
// once: through us.
[[noreturn]] void become_worker(const fs::path& program,
                                int config,
                                pid_t front,
                                const WatchedSignals& signals) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != front) {
    ::_exit(exit_code(ErrorKind::kInternal));
  }
  signals.restore();
  limit_spinning();
  std::string name = program.string();
  std::string option = "--config-fd";
  std::string descriptor = std::to_string(config);
  std::array<char*, 4> arguments{name.data(), option.data(), descriptor.data(), nullptr};
  ::execv(program.c_str(), arguments.data());
  log::error(fmt::format("cannot start {}: {}", name, std::strerror(errno)));
  ::_exit(exit_code(ErrorKind::kInternal));
}

int ended_by_signal(const std::string& who, int signal) {
  if (signal == SIGINT || signal == SIGTERM) {  // the worker had not come to answering it
    log::info("stopped before the run began: nothing was written");
    return 128 + signal;
  }
  if (signal == SIGKILL) {
    log::info(
        fmt::format("{}: {} was killed by signal 9 (out of memory?)\n  Smaller rows or "
                    "batches need less: "
                    "--cutoff_len, --per_device_train_batch_size.",
                    kind_name(ErrorKind::kMemory),
                    who));
    return exit_code(ErrorKind::kMemory);
  }
  log::info(fmt::format("{}: {} died of signal {} ({})",
                        kind_name(ErrorKind::kInternal),
                        who,
                        signal,
                        ::strsignal(signal)));
  return exit_code(ErrorKind::kInternal);
}

// One rank's process.
struct Child {
  pid_t process = 0;
  std::int64_t rank = 0;
  std::optional<int> code;  // how it ended
};

// Watches the ranks until all have ended. The first that fails decides; the others get a while to
// end by themselves (they notice, and say which rank it was), then they are killed.
class Watch {
 public:
  explicit Watch(std::vector<Child> children) : children_(std::move(children)) {}

  int until_ended(const WatchedSignals& signals) {
    while (std::any_of(
        children_.begin(), children_.end(), [](const Child& child) { return !child.code; })) {
      const int signal = signals.next(kPoll);
      if (signal == SIGTSTP) {
        stop_all();
      } else if (signal != 0 && signal != SIGCHLD) {
        hand_on(signal);
      }
      collect();
      kill_stragglers();
    }
    return failure_.value_or(0);
  }

 private:
  static constexpr std::chrono::milliseconds kPoll{500};
  static constexpr std::chrono::seconds kPatience{10};

  void collect() {
    for (Child& child : children_) {
      int status = 0;
      if (child.code || ::waitpid(child.process, &status, WNOHANG) != child.process) {
        continue;
      }
      child.code =
          WIFSIGNALED(status) ? ended_by_signal(child, WTERMSIG(status)) : WEXITSTATUS(status);
      if (*child.code != 0 && !failure_) {
        failure_ = child.code;
        failed_at_ = Clock::now();
      }
    }
  }

  int ended_by_signal(const Child& child, int signal) const {
    const std::string who = children_.size() == 1
                                ? "the worker"
                                : fmt::format("rank {} (process {})", child.rank, child.process);
    // Those that are killed because of another have been spoken for.
    return failure_ ? 128 + signal : cli::ended_by_signal(who, signal);
  }

  void kill_stragglers() const {
    if (!failure_ || Clock::now() - failed_at_ < kPatience) {
      return;
    }
    for (const Child& child : children_) {
      if (!child.code) {
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
      if (!child.code) {
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
    last_signal_ = signal;
    last_time_ = now;
  }

  std::vector<Child> children_;
  std::optional<int> failure_;
  Clock::time_point failed_at_{};
  int last_signal_ = 0;
  Clock::time_point last_time_{};
};

Child start_rank(const fs::path& program,
                 const config::RunConfig& config,
                 const WatchedSignals& signals) {
  const int descriptor = config_descriptor(config);
  const pid_t front = ::getpid();
  const pid_t worker = ::fork();
  if (worker < 0) {
    fail("cannot start the worker");
  }
  if (worker == 0) {
    become_worker(program, descriptor, front, signals);
  }
  ::close(descriptor);
  return {.process = worker, .rank = config.launch.rank};
}

}  // namespace

fs::path find_worker() {
  if (const char* program = std::getenv("ZEROTH_WORKER")) {  // internal: tests put a stand-in here
    return program;
  }
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  for (const fs::path& place :
       {folder / kWorkerName, folder.parent_path() / "libexec" / "zeroth" / kWorkerName}) {
    if (fs::exists(place)) {
      return place;
    }
  }
  throw Error(ErrorKind::kInternal,
              fmt::format("{} is missing: it belongs beside zeroth in {}\n  Build or install both.",
                          kWorkerName,
                          folder.string()));
}

int run_workers(config::RunConfig config) {
  const fs::path program = find_worker();
  // A launcher has made this process one rank; else all ranks are ours to start.
  const bool launched = config.launch.kind != config::LaunchKind::kLocal;
  const std::int64_t num_children = launched ? 1 : config.batch.world_size;
  if (num_children > 1) {
    config.launch.kind = config::LaunchKind::kHost;
    config.launch.run_name =
        fmt::format("zeroth-{}-{}", ::getpid(), Clock::now().time_since_epoch().count());
  }
  const WatchedSignals signals;
  std::vector<Child> children;
  for (std::int64_t child = 0; child < num_children; ++child) {
    config.launch.rank = launched ? config.launch.rank : child;
    children.push_back(start_rank(program, config, signals));
  }
  return Watch(std::move(children)).until_ended(signals);
}

}  // namespace zeroth::cli
