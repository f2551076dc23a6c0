#include "cli/launcher.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

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

  [[nodiscard]] int next() const {
    int signal = 0;
    ::sigwait(&signals_, &signal);
    return signal;
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

int ended_by_signal(int signal) {
  if (signal == SIGINT || signal == SIGTERM) {  // the worker had not come to answering it
    log::info("stopped before the run began: nothing was written");
    return 128 + signal;
  }
  if (signal == SIGKILL) {
    log::info(
        fmt::format("{}: the worker was killed by signal 9 (out of memory?)\n  Smaller rows or "
                    "batches need less: "
                    "--cutoff_len, --per_device_train_batch_size.",
                    kind_name(ErrorKind::kMemory)));
    return exit_code(ErrorKind::kMemory);
  }
  log::info(fmt::format("{}: the worker died of signal {} ({})",
                        kind_name(ErrorKind::kInternal),
                        signal,
                        ::strsignal(signal)));
  return exit_code(ErrorKind::kInternal);
}

// Watches one child until it has ended.
class Watch {
 public:
  explicit Watch(pid_t worker) : worker_(worker) {}

  int until_ended(const WatchedSignals& signals) {
    while (true) {
      const int signal = signals.next();
      if (signal == SIGCHLD) {
        if (const std::optional<int> code = ended()) {
          return *code;
        }
      } else if (signal == SIGTSTP) {
        stop_both();
      } else {
        hand_on(signal);
      }
    }
  }

 private:
  [[nodiscard]] std::optional<int> ended() const {
    int status = 0;
    if (::waitpid(worker_, &status, WNOHANG) != worker_) {
      return std::nullopt;
    }
    return WIFSIGNALED(status) ? ended_by_signal(WTERMSIG(status)) : WEXITSTATUS(status);
  }

  void stop_both() const {
    ::kill(worker_, SIGSTOP);
    ::raise(SIGSTOP);  // goes on when somebody sends SIGCONT, which is then handed on
  }

  void hand_on(int signal) {
    const auto now = Clock::now();
    const bool same_request = signal == last_signal_ && now - last_time_ < kOneRequest;
    if (!same_request) {
      ::kill(worker_, signal);
    }
    last_signal_ = signal;
    last_time_ = now;
  }

  pid_t worker_;
  int last_signal_ = 0;
  Clock::time_point last_time_{};
};

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

int run_worker(const config::RunConfig& config) {
  const fs::path program = find_worker();
  const int descriptor = config_descriptor(config);
  const WatchedSignals signals;
  const pid_t front = ::getpid();
  const pid_t worker = ::fork();
  if (worker < 0) {
    fail("cannot start the worker");
  }
  if (worker == 0) {
    become_worker(program, descriptor, front, signals);
  }
  ::close(descriptor);
  return Watch(worker).until_ended(signals);
}

}  // namespace zeroth::cli
