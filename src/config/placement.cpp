#include "config/placement.h"

#include <charconv>
#include <optional>

#include <fmt/format.h>

namespace zeroth::config {
namespace {

// One launcher's names for the size of the world and the place in it.
struct Launcher {
  const char* name;
  const char* world_size;
  const char* rank;
  bool mpi;
  bool rank_alone = false;  // the batch script of a job has a rank, its steps have a size too
};

constexpr Launcher kLaunchers[] = {
    {"Open MPI", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", true},
    {"MPICH", "PMI_SIZE", "PMI_RANK", true},
    {"Slurm", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID", true, true},
    {"torchrun, accelerate or deepspeed", "WORLD_SIZE", "RANK", false},
};

std::optional<std::int64_t> number(const Environment& environment,
                                   const std::string& name,
                                   Problems& problems) {
  const auto found = environment.find(name);
  if (found == environment.end() || found->second.empty()) {
    return std::nullopt;
  }
  const std::string& text = found->second;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    problems.add(ProblemKind::kPlacement,
                 "ranks",
                 fmt::format("{}={} (environment) is not a number of ranks", name, text));
    return std::nullopt;
  }
  return value;
}

std::optional<Placement> placement_by(const Launcher& launcher,
                                      const Environment& environment,
                                      Problems& problems) {
  const auto world_size = number(environment, launcher.world_size, problems);
  const auto rank = number(environment, launcher.rank, problems);
  if (!world_size && rank && !launcher.rank_alone) {
    problems.add(ProblemKind::kPlacement,
                 "ranks",
                 fmt::format("{}={} (environment) without {}: how many ranks are there?\n"
                             "    Start all ranks with {}, or unset {}.",
                             launcher.rank,
                             *rank,
                             launcher.world_size,
                             launcher.name,
                             launcher.rank));
  }
  if (!world_size || *world_size <= 1) {
    return std::nullopt;
  }
  if (!rank) {
    problems.add(ProblemKind::kPlacement,
                 "ranks",
                 fmt::format("{}={} (environment) without {}: which of the ranks is this?\n"
                             "    Start all ranks with {}, or unset {} and use --ranks {}.",
                             launcher.world_size,
                             *world_size,
                             launcher.rank,
                             launcher.name,
                             launcher.world_size,
                             *world_size));
    return std::nullopt;
  }
  if (*rank >= *world_size) {
    problems.add(ProblemKind::kPlacement,
                 "ranks",
                 fmt::format("{}={} (environment) is not below {}={}",
                             launcher.rank,
                             *rank,
                             launcher.world_size,
                             *world_size));
  }
  return Placement{.kind = launcher.mpi ? LaunchKind::kMpi : LaunchKind::kHost,
                   .rank = *rank,
                   .world_size = *world_size,
                   .source = launcher.world_size};
}

std::string variable(const Environment& environment,
                     const std::string& name,
                     const std::string& otherwise) {
  const auto found = environment.find(name);
  return found == environment.end() ? otherwise : found->second;
}

void refuse_several_hosts(const Placement& place,
                          const Environment& environment,
                          Problems& problems) {
  const auto local = number(environment, "LOCAL_WORLD_SIZE", problems);
  if (place.kind == LaunchKind::kHost && local && *local < place.world_size) {
    problems.add(
        ProblemKind::kPlacement,
        "ranks",
        fmt::format("WORLD_SIZE={} with LOCAL_WORLD_SIZE={} (environment) is a run on several "
                    "hosts, which goes "
                    "through MPI:\n    mpirun -n {} --map-by ppr:{}:node zeroth train ...",
                    place.world_size,
                    *local,
                    place.world_size,
                    *local));
  }
}

}  // namespace

Placement placement_of(const Environment& environment, Problems& problems) {
  Placement place;
  for (const Launcher& launcher : kLaunchers) {
    const auto found = placement_by(launcher, environment, problems);
    if (!found) {
      continue;
    }
    if (!place.launched()) {
      place = *found;
    } else if (found->rank != place.rank || found->world_size != place.world_size) {
      problems.add(
          ProblemKind::kPlacement,
          "ranks",
          fmt::format(
              "two launchers disagree: {} says rank {} of {}, {} says rank {} of {} (environment)\n"
              "    Use one of them; unset the other's variables.",
              place.source,
              place.rank,
              place.world_size,
              found->source,
              found->rank,
              found->world_size));
    }
  }
  place.run_name = variable(environment,
                            "ZEROTH_RUN_NAME",  // of zeroth launch
                            fmt::format("zeroth-{}-{}",
                                        variable(environment, "MASTER_ADDR", "localhost"),
                                        variable(environment, "MASTER_PORT", "0")));
  refuse_several_hosts(place, environment, problems);
  return place;
}

}  // namespace zeroth::config
