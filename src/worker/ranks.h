#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/make.h"
#include "config/run_config.h"
#include "data/example.h"

namespace zeroth::worker {

struct RankHooks {
  // Sees what this rank is busy with, from its start on.
  std::function<void(const std::string& activity)> activity;
  // Ends the process with this error: the one wait from which nothing can be thrown is MPI's start.
  std::function<void(const Error& error)> give_up;
};

// Joins the other ranks of this run; returns when all are there. From then on only rank 0 speaks to
// people. The hooks must outlive the communicator.
[[nodiscard]] std::shared_ptr<comm::Communicator> join_ranks(const config::RunConfig& config,
                                                             const RankHooks& hooks);

// All ranks must have read the same rows, or they would train on something that nobody has: kData
// names those that have not. `what`: "training". Collective.
void require_same_rows(comm::Communicator& comm,
                       const std::string& what,
                       const data::Dataset& dataset);

}  // namespace zeroth::worker
