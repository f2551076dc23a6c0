#include "cli/launcher.h"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/rank_watch.h"
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace zeroth::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr auto kWorkerName = "zeroth-worker";

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

// OpenMP's threads wait by spinning, which on a machine that others use as well costs the work of a
// whole core (a training run was seen to take 15 times as long). A short spin, then sleep, unless
// the user decides.
void limit_spinning() {
  if (std::getenv("OMP_WAIT_POLICY") == nullptr) {
    ::setenv("GOMP_SPINCOUNT", "10000", /*overwrite=*/0);
  }
}

// The heap in large pages where the system gives them to those who ask: fewer first touches, fewer
// misses of the address cache. Read by glibc before the program begins.
void ask_for_large_pages() {
  ::setenv("GLIBC_TUNABLES", "glibc.malloc.hugetlb=1", /*overwrite=*/0);
}

// What one rank's process is made of.
struct Start {
  fs::path program;
  std::vector<std::string> words;                                // the program's name first
  std::vector<std::pair<std::string, std::string>> environment;  // added to this process's own
  bool holds_save_requests = false;  // SIGUSR1 waits until the program can answer it
};

void hold_save_requests() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGUSR1);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
}

// Runs in the child alone. A group of its own, so that the terminal's Ctrl-C reaches the rank once:
// through us.
[[noreturn]] void become_rank(Start start,
                              WorkerStatus& status,
                              pid_t front,
                              const WatchedSignals& signals) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != front) {
    ::_exit(exit_code(ErrorKind::kInternal));
  }
  signals.restore();
  if (start.holds_save_requests) {
    hold_save_requests();
  }
  limit_spinning();
  ask_for_large_pages();
  for (const auto& [name, value] : start.environment) {
    ::setenv(name.c_str(), value.c_str(), /*overwrite=*/1);
  }
  std::vector<char*> arguments;
  for (std::string& word : start.words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  ::fcntl(status.descriptor(), F_SETFD, 0);  // this rank's alone stays open
  ::execv(start.program.c_str(), arguments.data());
  (void)status.set_failure(fmt::format("{}: cannot start {}: {}",
                                       kind_name(ErrorKind::kInternal),
                                       start.program.string(),
                                       std::strerror(errno)));
  ::_exit(exit_code(ErrorKind::kInternal));
}

// `child` has its status already.
Child started(Child child, const Start& start, const WatchedSignals& signals) {
  const pid_t front = ::getpid();
  child.process = ::fork();
  if (child.process < 0) {
    fail("cannot start a rank");
  }
  if (child.process == 0) {
    become_rank(start, child.status, front, signals);
  }
  return child;
}

Child start_worker(const fs::path& program,
                   const config::RunConfig& config,
                   const WatchedSignals& signals) {
  Child child{.rank = config.launch.rank, .status = WorkerStatus::create()};
  const int descriptor = config_descriptor(config);
  const Start start{.program = program,
                    .words = {program.string(),
                              "--config-fd",
                              std::to_string(descriptor),
                              "--status-fd",
                              std::to_string(child.status.descriptor())},
                    .environment = {},
                    .holds_save_requests = true};
  Child running = started(std::move(child), start, signals);
  ::close(descriptor);
  return running;
}

// Unique among live runs on this host.
std::string new_run_name() {
  return fmt::format("zeroth-{}-{}", ::getpid(), Clock::now().time_since_epoch().count());
}

// As torchrun tells its ranks; the port is for those who want one, ours never use it.
Child start_program(const std::vector<std::string>& words,
                    std::int64_t rank,
                    std::int64_t ranks,
                    const std::string& run_name,
                    const WatchedSignals& signals) {
  constexpr int kFirstPort = 20000;
  constexpr int kPorts = 40000;
  Child child{.rank = rank, .status = WorkerStatus::create()};
  const Start start{
      .program = words.front(),
      .words = words,
      .environment = {{"RANK", std::to_string(rank)},
                      {"LOCAL_RANK", std::to_string(rank)},
                      {"WORLD_SIZE", std::to_string(ranks)},
                      {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
                      {"MASTER_ADDR", "localhost"},
                      {"MASTER_PORT", std::to_string(kFirstPort + ::getpid() % kPorts)},
                      {"ZEROTH_RUN_NAME", run_name},
                      {"ZEROTH_STATUS_FD", std::to_string(child.status.descriptor())}}};
  return started(std::move(child), start, signals);
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
    config.launch.run_name = new_run_name();
  }
  const WatchedSignals signals;
  std::vector<Child> children;
  for (std::int64_t child = 0; child < num_children; ++child) {
    config.launch.rank = launched ? config.launch.rank : child;
    children.push_back(start_worker(program, config, signals));
  }
  return watch_ranks(std::move(children), {.world_size = config.batch.world_size}, signals);
}

int run_programs(const std::vector<std::string>& words, std::int64_t ranks) {
  const std::string run_name = new_run_name();
  const WatchedSignals signals;
  std::vector<Child> children;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    children.push_back(start_program(words, rank, ranks, run_name, signals));
  }
  return watch_ranks(std::move(children), {.world_size = ranks, .of_user = true}, signals);
}

}  // namespace zeroth::cli
