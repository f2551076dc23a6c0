#include "engine/processors.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <string>
#include <tuple>

#include "base/log.h"
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sched.h>
#include <unistd.h>

#include <ATen/Parallel.h>

namespace zeroth::engine {
namespace {

std::vector<int> allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> processors;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
      if (CPU_ISSET(static_cast<std::size_t>(processor), &set)) {
        processors.push_back(processor);
      }
    }
  }
  return processors;
}

int topology(int processor, const char* file) {
  int value = 0;
  std::ifstream(fmt::format("/sys/devices/system/cpu/cpu{}/topology/{}", processor, file)) >> value;
  return value;
}

// Neighbours first: hardware threads of one core, then cores of one package.
void sort_by_place(std::vector<int>& processors) {
  const auto place = [](int processor) {
    return std::tuple(topology(processor, "physical_package_id"),
                      topology(processor, "thread_siblings_list"),  // begins with the first sibling
                      processor);
  };
  std::vector<std::tuple<int, int, int>> places;
  std::transform(processors.begin(), processors.end(), std::back_inserter(places), place);
  std::sort(places.begin(), places.end());
  std::transform(places.begin(), places.end(), processors.begin(), [](const auto& known) {
    return std::get<2>(known);
  });
}

// A double holds 53 bits of it exactly.
double fingerprint(const std::string& text) {
  return static_cast<double>(std::hash<std::string>{}(text) >> 11);
}

double machine_fingerprint() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 65> name{};
  ::gethostname(name.data(), name.size() - 1);
  return fingerprint(boot + name.data());
}

struct Sharers {
  std::int64_t index = 0;  // of this rank
  std::int64_t count = 0;
};

// The ranks of this machine that may use the same processors.
Sharers find_sharers(comm::Communicator& comm, const std::vector<int>& processors) {
  const std::vector<double> mine{machine_fingerprint(),
                                 fingerprint(fmt::format("{}", fmt::join(processors, ",")))};
  const std::vector<double> all = comm.gather_values("processors", mine);
  Sharers sharers;
  for (std::int64_t rank = 0; rank < comm.size(); ++rank) {
    const auto at = static_cast<std::size_t>(2 * rank);
    const bool same = all[at] == mine[0] && all[at + 1] == mine[1];
    sharers.index += same && rank < comm.rank() ? 1 : 0;
    sharers.count += same ? 1 : 0;
  }
  return sharers;
}

bool user_places_threads() {
  const auto is_set = [](const char* name) { return std::getenv(name) != nullptr; };
  return is_set("OMP_PROC_BIND") || is_set("OMP_PLACES") || is_set("GOMP_CPU_AFFINITY");
}

void stay_on(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) {
    CPU_SET(static_cast<std::size_t>(processor), &set);
  }
  ::sched_setaffinity(0, sizeof(set), &set);  // a refusal costs speed alone
}

}  // namespace

std::vector<int> part_of(const std::vector<int>& processors,
                         std::int64_t index,
                         std::int64_t count) {
  const auto size = static_cast<std::int64_t>(processors.size());
  if (size < count) {
    return {};
  }
  return {processors.begin() + index * size / count,
          processors.begin() + (index + 1) * size / count};
}

void share_processors(comm::Communicator& comm, std::int64_t threads) {
  std::vector<int> processors = allowed_processors();
  sort_by_place(processors);
  const Sharers sharers = find_sharers(comm, processors);
  const std::vector<int> part = part_of(processors, sharers.index, sharers.count);
  const auto room = static_cast<std::int64_t>(part.size());
  // The same for all sharers: a rank with one thread more would wait for the others.
  const std::int64_t equal = static_cast<std::int64_t>(processors.size()) / sharers.count;
  const std::int64_t used = threads > 0 ? threads : std::max<std::int64_t>(1, equal);
  const bool pins = sharers.count > 1 && used <= room && !user_places_threads();
  if (pins) {
    stay_on(part);
  }
  at::set_num_threads(static_cast<int>(used));
  if (comm.size() > 1) {
    log::info(fmt::format(
        "threads: {} for each of {} ranks{}",
        used,
        comm.size(),
        pins ? ", on processors of their own"
        : room == 0
            ? fmt::format(", {} of which share {} processors", sharers.count, processors.size())
            : ""));
  }
}

}  // namespace zeroth::engine
