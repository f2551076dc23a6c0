#pragma once

#include <optional>
#include <string>

#include "config/run_config.h"
#include "plan/plan.h"

namespace zeroth::plan {

// The least sharding that fits, with the global batch as asked: at the micro-batch that was asked
// for if any stage holds it, else at the largest part of it that fits.
struct Proposal {
  int stage = 0;
  std::int64_t micro_batch_rows = 1;
  std::int64_t accumulation = 1;
  std::int64_t largest_micro_batch = 1;  // that would fit at this stage
  Bytes needed;                          // by one rank
};

// Of what Zeroth can do; nullopt: nothing fits.
[[nodiscard]] std::optional<Proposal> least_that_fits(const Plan& plan);

// By one rank, with a single row at the stage that needs least of those that Zeroth can do.
[[nodiscard]] Bytes least_needed(const Plan& plan);

// A ds_config.json of it, each value with a comment that says why. `file` is its name.
[[nodiscard]] std::string ds_config(const Plan& plan,
                                    const Proposal& proposal,
                                    const config::RunConfig& config,
                                    const std::string& file);

}  // namespace zeroth::plan
