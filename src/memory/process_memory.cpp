#include "memory/process_memory.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <sys/resource.h>

namespace zeroth::memory {
namespace {

// "/usr/lib/libfmt.so.9": code, which others may run too.
bool is_library(const std::string& path) {
  const std::size_t at = path.rfind(".so");
  return at != std::string::npos && (at + 3 == path.size() || path[at + 3] == '.');
}

}  // namespace

std::int64_t peak_resident_bytes() {
  struct rusage usage {};

  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

std::int64_t proportional_set_bytes() {
  std::ifstream mappings("/proc/self/smaps");
  const std::string program = std::filesystem::read_symlink("/proc/self/exe");
  std::int64_t kibibytes = 0;
  bool counts = false;
  for (std::string line; std::getline(mappings, line);) {
    const bool is_field = line.find(':') < line.find(' ');  // else a mapping's first line
    if (!is_field) {
      const std::size_t path = line.find_first_of("/[");
      const std::string name = path == std::string::npos ? "" : line.substr(path);
      counts = !is_library(name) && name != program;
    } else if (counts && line.starts_with("Pss:")) {
      kibibytes += std::stoll(line.substr(4));
    }
  }
  return kibibytes * 1024;
}

std::int64_t minor_page_faults() {
  struct rusage usage {};

  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

}  // namespace zeroth::memory
