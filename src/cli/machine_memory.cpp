#include "cli/machine_memory.h"

#include <algorithm>
#include <fstream>

#include <unistd.h>

namespace zeroth::cli {

plan::Bytes machine_memory() {
  const std::int64_t pages = ::sysconf(_SC_PHYS_PAGES);
  std::int64_t bytes = pages * ::sysconf(_SC_PAGE_SIZE);
  for (const char* file :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    std::ifstream stream(file);
    if (std::int64_t limit = 0; stream >> limit) {  // "max" is no number: no limit
      bytes = std::min(bytes, limit);
    }
  }
  return plan::Bytes(bytes);
}

}  // namespace zeroth::cli
