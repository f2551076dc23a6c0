#include "process.h"

#include <chrono>
#include <cstdlib>
#include <stdexcept>

#include "base/file.h"
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace zeroth::testing {
namespace {

namespace fs = std::filesystem;

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (std::string& text : texts) {
    list.push_back(text.data());
  }
  list.push_back(nullptr);
  return list;
}

std::vector<std::string> full_environment(const std::vector<std::string>& added) {
  std::vector<std::string> all = added;  // the first of two equal names counts
  for (char** variable = environ; *variable != nullptr; ++variable) {
    all.emplace_back(*variable);
  }
  return all;
}

struct Streams {
  fs::path input;
  fs::path output;
  fs::path errors;
};

pid_t spawn(const Invocation& invocation, const Streams& streams) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, streams.input.c_str(), O_RDONLY, 0);
  posix_spawn_file_actions_addopen(
      &actions, 1, streams.output.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  posix_spawn_file_actions_addopen(
      &actions, 2, streams.errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (!invocation.working_folder.empty()) {
    posix_spawn_file_actions_addchdir_np(&actions, invocation.working_folder.c_str());
  }
  std::vector<std::string> arguments = invocation.arguments;
  std::vector<std::string> environment = full_environment(invocation.environment);
  pid_t process = 0;
  const int failed = posix_spawn(&process,
                                 arguments[0].c_str(),
                                 &actions,
                                 nullptr,
                                 pointers(arguments).data(),
                                 pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) {
    throw std::runtime_error("cannot start " + arguments[0]);
  }
  return process;
}

}  // namespace

pid_t start(const Invocation& invocation, const fs::path& output, const fs::path& errors) {
  return spawn(invocation, {"/dev/null", output, errors});
}

bool catches(pid_t process, int signal) {
  // proc(5): "SigCgt", a mask in hexadecimal digits.
  const std::string status =
      read_file("/proc/" + std::to_string(process) + "/status", ErrorKind::kDisk);
  const std::string label = "SigCgt:\t";
  const std::size_t at = status.find(label);
  return at != std::string::npos &&
         ((std::stoull(status.substr(at + label.size()), nullptr, 16) >> (signal - 1)) & 1U) != 0;
}

int wait_for(pid_t process) {
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

Outcome run(const Invocation& invocation) {
  const TemporaryFolder folder;
  const Streams streams{folder.path() / "in", folder.path() / "out", folder.path() / "err"};
  write_file_atomically(streams.input, invocation.input);
  const auto begin = std::chrono::steady_clock::now();
  const int exit_code = wait_for(spawn(invocation, streams));
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
  return {.exit_code = exit_code,
          .output = read_file(streams.output, ErrorKind::kDisk),
          .errors = read_file(streams.errors, ErrorKind::kDisk),
          .seconds = elapsed.count()};
}

std::vector<std::string> mpirun_environment() {
  std::vector<std::string> environment{"OMPI_ALLOW_RUN_AS_ROOT=1",
                                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1"};
  if (const char* options = std::getenv("ZEROTH_MPIRUN_ASAN_OPTIONS"); options != nullptr) {
    environment.push_back(std::string("ASAN_OPTIONS=") + options);
  }
  return environment;
}

TemporaryFolder::TemporaryFolder() {
  std::string name = (fs::temp_directory_path() / "zeroth_test_XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("cannot make a temporary folder");
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace zeroth::testing
