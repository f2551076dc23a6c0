#pragma once

#include "plan/bytes.h"
#include "plan/states.h"
#include "plan/units.h"

// What rests in files, the buffers it passes through, and what moves.
namespace zeroth::plan {

// One rank's elements whose state is in files, of those it holds.
struct InFiles {
  std::int64_t optimizer = 0;  // master weights and moments
  std::int64_t gradients = 0;
  std::int64_t parameters = 0;  // weights that compute
};

[[nodiscard]] InFiles in_files(const PlanInput& input, const ModelSize& model);

// Pieces of state that are read, updated and written; shards of weights and of sums on their way.
[[nodiscard]] Bytes file_buffers(const PlanInput& input, const ModelSize& model);

// By one rank in one update.
struct FileTraffic {
  Bytes read;
  Bytes written;
};

[[nodiscard]] FileTraffic file_traffic(const PlanInput& input, const ModelSize& model);

}  // namespace zeroth::plan
