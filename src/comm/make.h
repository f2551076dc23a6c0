#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "comm/communicator.h"

// How each kind of communicator comes to be.
namespace zeroth::comm {

// The ranks of one host. All give the same run name, which no other run on the host may have at the
// same time, and the same size.
struct HostGroup {
  std::string run_name;
  int rank = 0;
  int size = 1;
  double start_timeout_s = 120;
  // How messages name the ranks, where they are part of a larger world; empty: as they count here.
  std::vector<int> world_ranks;
};

// One rank; every operation ends at once.
[[nodiscard]] std::unique_ptr<Communicator> make_local_communicator();

// `size` ranks that live in one process, one thread each: the host's algorithms in private memory.
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> make_thread_group(int size);

// Processes of one host, through shared memory. Returns when all ranks have joined; an Error names
// those that have not within the timeout. Nothing with a name is left in the file system at any
// time, so a kill leaves nothing behind.
[[nodiscard]] std::unique_ptr<Communicator> make_host_communicator(const HostGroup& group);

// All ranks that mpirun or srun started: `host` inside each host, MPI between hosts. Once per
// process. kNotSupported in a build without MPI. ZEROTH_HOST_ID in the environment makes ranks of
// one machine count as ranks of several hosts.
//
// MPI's own start waits for all ranks, and nothing can call it off: if it lasts longer than the
// timeout, `give_up` is called, from another thread, and must end the process. Empty: it waits.
[[nodiscard]] std::unique_ptr<Communicator> make_mpi_communicator(
    double start_timeout_s, const std::function<void(const Error&)>& give_up = {});

}  // namespace zeroth::comm
