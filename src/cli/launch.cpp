#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/launcher.h"
#include "config/placement.h"
#include "config/resolve.h"
#include <fmt/format.h>
#include <unistd.h>

namespace zeroth::cli {
namespace {

namespace fs = std::filesystem;

bool can_run(const fs::path& file) {
  std::error_code error;
  return fs::is_regular_file(file, error) && ::access(file.c_str(), X_OK) == 0;
}

// As a shell finds it: a path where there is a slash, else in PATH.
fs::path found(const std::string& program) {
  if (program.find('/') != std::string::npos) {
    if (can_run(program)) {
      return program;
    }
    throw Error(ErrorKind::kUsage,
                fmt::format("{} is {}\n  Build it first, or check the path.",
                            program,
                            fs::exists(program) ? "no program that can be run" : "not there"));
  }
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "" : path, ':')) {
    if (can_run(fs::path(folder) / program)) {
      return fs::path(folder) / program;
    }
  }
  throw Error(
      ErrorKind::kUsage,
      fmt::format("{0} is in no folder of PATH\n  Write ./{0} for one in this folder.", program));
}

void refuse_inside_a_launcher() {
  config::Problems problems;
  const config::Placement place = config::placement_of(config::process_environment(), problems);
  problems.throw_if_any();
  if (place.launched()) {
    throw Error(ErrorKind::kUsage,
                fmt::format("zeroth launch inside another launcher ({}={} in the environment)\n  "
                            "Start the program itself there: it finds out which rank it is.",
                            place.source,
                            place.world_size));
  }
}

}  // namespace

int run_launch(Arguments arguments) {
  const auto divider = std::find(arguments.begin(), arguments.end(), "--");
  std::vector<std::string> words(divider == arguments.end() ? divider : divider + 1,
                                 arguments.end());
  if (words.empty()) {
    throw Error(ErrorKind::kUsage,
                "zeroth launch starts the program that stands after --\n  zeroth launch --ranks 2 "
                "-- ./my_program --its-own options");
  }
  const std::vector<std::string> options(arguments.begin(), divider);
  const config::RunConfig config = config::resolve(config::Command::kLaunch, options, {});
  refuse_inside_a_launcher();
  words.front() = found(words.front()).string();
  return run_programs(words, config.batch.world_size);
}

}  // namespace zeroth::cli
