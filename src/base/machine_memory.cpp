#include "base/machine_memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

namespace zeroth {
namespace {

namespace fs = std::filesystem;

constexpr auto kUnbounded = std::numeric_limits<std::int64_t>::max();

// nullopt: no such file, or no number in it ("max").
std::optional<std::int64_t> number_in(const fs::path& file) {
  std::ifstream stream(file);
  std::int64_t number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

// "key: 123 kB" in a file of /proc, in bytes; 0 where it is missing.
std::int64_t kilobytes_of(const char* file, const std::string& key) {
  constexpr std::int64_t kKilo = 1024;
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with(key + ":")) {
      return std::stoll(line.substr(key.size() + 1)) * kKilo;
    }
  }
  return 0;
}

// Control groups that this process is in, the innermost first (cgroups(7), version 2).
std::vector<fs::path> own_groups() {
  const fs::path root = "/sys/fs/cgroup";
  std::ifstream stream("/proc/self/cgroup");
  fs::path group = root;
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("0::/")) {
      group = root / line.substr(std::string("0::/").size());
    }
  }
  std::vector<fs::path> groups;
  for (; group != root && group.has_relative_path(); group = group.parent_path()) {
    groups.push_back(group);
  }
  groups.push_back(root);
  return groups;
}

// Of each bounded group: its limit, and what is in use of it, page cache that can go left out.
struct Bound {
  std::int64_t limit = kUnbounded;
  std::int64_t used = 0;
};

std::int64_t inactive_file_bytes(const fs::path& group) {
  std::ifstream stream(group / "memory.stat");
  std::string key;
  for (std::int64_t value = 0; stream >> key >> value;) {
    if (key == "inactive_file") {
      return value;
    }
  }
  return 0;
}

std::vector<Bound> bounds() {
  std::vector<Bound> all;
  for (const fs::path& group : own_groups()) {
    if (const auto limit = number_in(group / "memory.max")) {
      const std::int64_t used = number_in(group / "memory.current").value_or(0);
      all.push_back({*limit, std::max<std::int64_t>(0, used - inactive_file_bytes(group))});
    }
  }
  const fs::path older = "/sys/fs/cgroup/memory";
  if (const auto limit = number_in(older / "memory.limit_in_bytes")) {
    all.push_back({*limit, number_in(older / "memory.usage_in_bytes").value_or(0)});
  }
  return all;
}

}  // namespace

std::int64_t machine_memory() {
  std::int64_t bytes = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGE_SIZE);
  for (const Bound& bound : bounds()) {
    bytes = std::min(bytes, bound.limit);
  }
  return bytes;
}

std::int64_t available_memory() {
  std::int64_t bytes = kilobytes_of("/proc/meminfo", "MemAvailable");
  for (const Bound& bound : bounds()) {
    bytes = std::min(bytes, std::max<std::int64_t>(0, bound.limit - bound.used));
  }
  return bytes;
}

}  // namespace zeroth
