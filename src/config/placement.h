#pragma once

#include <cstdint>
#include <string>

#include "config/problems.h"
#include "config/rules.h"

namespace zeroth::config {

// Which rank of how many this process is, as a launcher's variables say. Without a launcher: rank 0
// of 1.
struct Placement {
  LaunchKind kind = LaunchKind::kLocal;
  std::int64_t rank = 0;
  std::int64_t world_size = 1;
  std::string source;    // the variable that gave world_size; empty without a launcher
  std::string run_name;  // the same for all ranks of a torchrun-style launcher

  [[nodiscard]] bool launched() const noexcept { return kind != LaunchKind::kLocal; }
};

// Launchers that disagree, a world size without a rank, and several hosts without MPI are problems.
[[nodiscard]] Placement placement_of(const Environment& environment, Problems& problems);

}  // namespace zeroth::config
