#include "base/log.h"

#include <atomic>

#include <unistd.h>

namespace zeroth::log {
namespace {

// Set once, before a process says anything.
std::atomic<bool> quiet_process{
    false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

void write_line(std::string text) {
  text.push_back('\n');
  const char* data = text.data();
  std::size_t left = text.size();
  while (left > 0) {
    const ssize_t written = ::write(STDERR_FILENO, data, left);
    if (written <= 0) {
      return;  // there is nobody left to tell
    }
    data += written;
    left -= static_cast<std::size_t>(written);
  }
}

}  // namespace

void set_quiet(bool quiet) noexcept {
  quiet_process = quiet;
}

void info(const std::string& message) {
  if (quiet_process) {
    return;
  }
  write_line(message);
}

void warn(const std::string& message) {
  if (quiet_process) {
    return;
  }
  write_line("warning: " + message);
}

void always(const std::string& message) {
  write_line(message);
}

void error(const std::string& message) {
  write_line("error: " + message);
}

}  // namespace zeroth::log
