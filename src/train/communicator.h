#pragma once

#include <functional>
#include <memory>

#include "comm/make.h"
#include "config/run_config.h"

namespace zeroth::train {

// Joins the ranks of a launch. `group` is for ranks of one host; `give_up` is told when MPI's own
// start lasts too long, and must end the process.
[[nodiscard]] std::unique_ptr<comm::Communicator> make_communicator(
    config::LaunchKind kind,
    const comm::HostGroup& group,
    const std::function<void(const Error&)>& give_up);

}  // namespace zeroth::train
