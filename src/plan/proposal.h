#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/run_config.h"
#include "plan/plan.h"

namespace zeroth::plan {

// The least sharding that fits, with the global batch as asked: at the micro-batch that was asked
// for if any stage holds it, else at the largest part of it that fits. Where none does, the least
// offload to files: the one that moves the fewest bytes.
struct Proposal {
  int stage = 0;
  Offload offload;
  std::int64_t micro_batch_rows = 1;
  std::int64_t accumulation = 1;
  std::int64_t largest_micro_batch = 1;  // that would fit at this stage
  Bytes needed;                          // by one rank
};

// Of what Zeroth can do; nullopt: nothing fits.
[[nodiscard]] std::optional<Proposal> least_that_fits(const Plan& plan);

// By one rank, with a single row at the stage that needs least of those that Zeroth can do.
[[nodiscard]] Bytes least_needed(const Plan& plan);

// A proposal as a file.
struct ProposalFile {
  std::string text;                // of a ds_config.json, each value with a comment that says why
  std::vector<std::string> words;  // options that belong to it: what a ds_config.json cannot say
  // Read back with its words, the text must set what the proposal and the user set. Where it does
  // not (a defect), the text names the key as well. One line each.
  std::vector<std::string> differences;
};

// Of `proposal` for the run of `config`. Every setting in force that the user gave is taken over,
// but for what the proposal decides; what has no effect or is planned is named. `file` is its name.
[[nodiscard]] ProposalFile ds_config(const Plan& plan,
                                     const Proposal& proposal,
                                     const config::RunConfig& config,
                                     const std::string& file);

}  // namespace zeroth::plan
