#include "train/communicator.h"

namespace zeroth::train {

std::unique_ptr<comm::Communicator> make_communicator(
    config::LaunchKind kind,
    const comm::HostGroup& group,
    const std::function<void(const Error&)>& give_up) {
  switch (kind) {
    case config::LaunchKind::kLocal:
      return comm::make_local_communicator();
    case config::LaunchKind::kHost:
      return comm::make_host_communicator(group);
    case config::LaunchKind::kMpi:
      break;
  }
  return comm::make_mpi_communicator(group.start_timeout_s, give_up);
}

}  // namespace zeroth::train
