#include "base/error.h"
#include "comm/make.h"

// Stands in for mpi_communicator.cpp in a build without MPI.
namespace zeroth::comm {

std::unique_ptr<Communicator> make_mpi_communicator(
    double /*start_timeout_s*/, const std::function<void(const Error&)>& /*give_up*/) {
  throw Error(ErrorKind::kNotSupported,
              "this build of zeroth has no MPI, so ranks on several hosts cannot meet\n"
              "  Install an MPI (Debian: libopenmpi-dev) and build again, or stay on one host with "
              "--ranks.");
}

}  // namespace zeroth::comm
