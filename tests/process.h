#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <sys/types.h>

// Running programs from tests, as a shell would but without one.
namespace zeroth::testing {

struct Invocation {
  std::vector<std::string> arguments;    // the program first
  std::string input;                     // standard input
  std::vector<std::string> environment;  // NAME=value, added to this process's own
  std::filesystem::path working_folder;  // empty: this process's own
};

struct Outcome {
  int exit_code = 0;  // 128 + n for signal n
  std::string output;
  std::string errors;
  double seconds = 0;
};

// Runs to the end. The streams pass through files in a temporary folder, so that nothing can block.
[[nodiscard]] Outcome run(const Invocation& invocation);

// Starts and does not wait; standard input is empty, output and errors go to the named files.
[[nodiscard]] pid_t start(const Invocation& invocation,
                          const std::filesystem::path& output,
                          const std::filesystem::path& errors);

// Whether the process has a handler for the signal: before, it would end it.
[[nodiscard]] bool catches(pid_t process, int signal);
[[nodiscard]] int wait_for(pid_t process);  // its exit code, 128 + n for signal n

// What mpirun is to be given in its environment. Open MPI leaks from plug-ins that it has unloaded
// by the end, which no suppression can name, and its threads let the leak check itself crash: ranks
// under mpirun run without that check (ZEROTH_MPIRUN_ASAN_OPTIONS in CMakePresets.json).
[[nodiscard]] std::vector<std::string> mpirun_environment();

// A new empty folder that goes with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace zeroth::testing
