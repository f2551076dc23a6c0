#include "comm/process_id.h"

#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>

namespace zeroth::comm {

std::uint64_t process_start_time(std::int32_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string line;
  if (!std::getline(file, line)) {
    return 0;
  }
  // "pid (name) state ..."; the name may hold anything, so fields count from its last bracket.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  std::string state;
  fields >> state;
  if (state == "Z" || state == "X") {
    return 0;
  }
  constexpr int kFieldsBetween = 18;  // from field 4 to field 21; start time is field 22
  std::string skipped;
  for (int i = 0; i < kFieldsBetween; ++i) {
    fields >> skipped;
  }
  std::uint64_t start = 0;
  fields >> start;
  return start;
}

}  // namespace zeroth::comm
