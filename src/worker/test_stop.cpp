#include "worker/test_stop.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include <fmt/format.h>
#include <unistd.h>

namespace zeroth::worker {
namespace {

constexpr auto kVariable = "ZEROTH_TEST_STOP_AT";
constexpr std::chrono::seconds kPause{3};

void stop(const std::string& how, const std::string& activity) {
  if (how == "kill") {
    ::raise(SIGKILL);
  } else if (how == "exit") {
    ::_exit(1);
  } else if (how == "fail") {
    throw Error(ErrorKind::kData, fmt::format("made to fail in {}", activity));
  } else if (how == "pause") {
    std::this_thread::sleep_for(kPause);
  }
}

[[noreturn]] void refuse(const char* value) {
  throw Error(ErrorKind::kUsage,
              fmt::format("{}={} (environment) is not RANK:ACTIVITY[:kill|exit|fail|pause]\n  "
                          "Unset it: it serves tests alone.",
                          kVariable,
                          value));
}

}  // namespace

TestStop test_stop(std::int64_t rank) {
  const char* const value = std::getenv(kVariable);
  if (value == nullptr) {
    return {};
  }
  std::vector<std::string> parts = split(value, ':');
  if (parts.size() == 2) {
    parts.emplace_back("kill");
  }
  const std::vector<std::string> ways{"kill", "exit", "fail", "pause"};
  if (parts.size() != 3 || std::find(ways.begin(), ways.end(), parts[2]) == ways.end()) {
    refuse(value);
  }
  if (parts[0] != std::to_string(rank)) {
    return {};
  }
  return [wanted = parts[1], how = parts[2]](const std::string& activity) {
    if (activity == wanted) {
      stop(how, activity);
    }
  };
}

}  // namespace zeroth::worker
