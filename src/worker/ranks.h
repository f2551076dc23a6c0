#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/make.h"
#include "config/run_config.h"

namespace zeroth::worker {

// Joins the other ranks of this run; returns when all are there. From then on only rank 0 speaks to
// people.
[[nodiscard]] std::shared_ptr<comm::Communicator> join_ranks(const config::RunConfig& config);

// Every rank's text at every rank, in rank order. Collective.
[[nodiscard]] std::vector<std::string> gather_texts(comm::Communicator& comm,
                                                    const std::string& label,
                                                    const std::string& text);

}  // namespace zeroth::worker
