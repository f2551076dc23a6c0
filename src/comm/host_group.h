#pragma once

#include <memory>

#include "comm/make.h"
#include "comm/shared_communicator.h"

namespace zeroth::comm {

// make_host_communicator() for those who build on it.
[[nodiscard]] std::unique_ptr<SharedCommunicator> join_host_group(const HostGroup& group);

}  // namespace zeroth::comm
