#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cli/inspect_read.h"

namespace zeroth::cli {

struct Sums {
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
  std::map<std::string, std::int64_t> elements_by_type;
};

[[nodiscard]] Sums sums_of(const Inspected& found);

// "master", "moment_0", ... with what there is of each.
struct StateKind {
  std::string what;
  std::int64_t tensors = 0;
  std::int64_t elements = 0;
};

[[nodiscard]] std::vector<StateKind> state_kinds(const checkpoint::Manifest& manifest);

}  // namespace zeroth::cli
