#include "comm/mpi/mpi_session.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "base/error.h"
#include <fmt/format.h>
#include <unistd.h>

namespace zeroth::comm {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;

using HostId = std::array<char, 256>;

// Equal for processes that can share memory. ZEROTH_HOST_ID splits one machine into several hosts.
HostId own_host_id() {
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  std::array<char, 65> name{};
  ::gethostname(name.data(), name.size() - 1);
  const char* given = std::getenv("ZEROTH_HOST_ID");
  const std::string text =
      fmt::format("{} {} {}", boot, name.data(), given == nullptr ? "" : given);
  HostId id{};
  std::copy_n(text.begin(), std::min(text.size(), id.size() - 1), id.begin());
  return id;
}

template <typename Byte, typename Each>
void in_pieces(std::span<Byte> bytes, const Each& each) {
  for (std::size_t begin = 0; begin < bytes.size(); begin += kPiece) {
    each(bytes.subspan(begin, std::min(kPiece, bytes.size() - begin)));
  }
}

MPI_Comm duplicate_world() {
  MPI_Comm communicator = MPI_COMM_NULL;
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &communicator), "MPI_Comm_dup");
  MPI_Comm_set_errhandler(communicator, MPI_ERRORS_RETURN);
  return communicator;
}

}  // namespace

void check_mpi(int code, const char* what) {
  if (code == MPI_SUCCESS) {
    return;
  }
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  throw Error(ErrorKind::kCommunication, fmt::format("{} failed: {}", what, text.data()));
}

MpiSession::MpiSession() {
  int given = MPI_THREAD_SINGLE;
  check_mpi(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &given), "MPI_Init_thread");
  if (given < MPI_THREAD_FUNNELED) {
    throw Error(ErrorKind::kNotSupported, "this MPI was built without support for threads");
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  collectives_ = duplicate_world();
  messages_ = duplicate_world();
  find_hosts();
  agree_on_name();
}

MpiSession::~MpiSession() {
  if (finalise_) {
    MPI_Finalize();
  }
}

void MpiSession::find_hosts() {
  const HostId own = own_host_id();
  std::vector<HostId> ids(static_cast<std::size_t>(size_));
  const int bytes = static_cast<int>(own.size());
  check_mpi(MPI_Allgather(own.data(), bytes, MPI_CHAR, ids.data(), bytes, MPI_CHAR, collectives_),
            "MPI_Allgather");
  std::vector<HostId> known;
  for (int r = 0; r < size_; ++r) {
    const HostId& id = ids[static_cast<std::size_t>(r)];
    const auto place = std::find(known.begin(), known.end(), id);
    const auto host = static_cast<std::size_t>(place - known.begin());
    if (place == known.end()) {
      known.push_back(id);
      ranks_.emplace_back();
    }
    hosts_.push_back(static_cast<int>(host));
    ranks_[host].push_back(r);
  }
}

void MpiSession::agree_on_name() {
  const auto now = std::chrono::system_clock::now().time_since_epoch().count();
  std::array<std::int64_t, 2> parts = {::getpid(), now};
  check_mpi(MPI_Bcast(parts.data(), 2, MPI_INT64_T, 0, collectives_), "MPI_Bcast");
  run_name_ = fmt::format("mpi-{}-{}-host-{}", parts[0], parts[1], host_of(rank_));
}

MpiRequests::~MpiRequests() {
  for (MPI_Request& request : requests_) {
    if (request != MPI_REQUEST_NULL) {  // only after a failure
      MPI_Cancel(&request);
      MPI_Request_free(&request);
    }
  }
}

void MpiRequests::send(std::span<const std::byte> bytes, int to, int tag, MPI_Comm communicator) {
  in_pieces(bytes, [&](std::span<const std::byte> piece) {
    MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
    const int count = static_cast<int>(piece.size());
    check_mpi(MPI_Isend(piece.data(), count, MPI_BYTE, to, tag, communicator, &request),
              "MPI_Isend");
  });
}

void MpiRequests::receive(std::span<std::byte> bytes, int from, int tag, MPI_Comm communicator) {
  in_pieces(bytes, [&](std::span<std::byte> piece) {
    MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
    const int count = static_cast<int>(piece.size());
    check_mpi(MPI_Irecv(piece.data(), count, MPI_BYTE, from, tag, communicator, &request),
              "MPI_Irecv");
  });
}

void MpiRequests::broadcast(std::span<std::byte> bytes, int root, MPI_Comm communicator) {
  in_pieces(bytes, [&](std::span<std::byte> piece) {
    MPI_Request& request = requests_.emplace_back(MPI_REQUEST_NULL);
    const int count = static_cast<int>(piece.size());
    check_mpi(MPI_Ibcast(piece.data(), count, MPI_BYTE, root, communicator, &request),
              "MPI_Ibcast");
  });
}

bool MpiRequests::all_done() {
  int done = 1;
  check_mpi(
      MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE),
      "MPI_Testall");
  if (done != 0) {
    requests_.clear();
  }
  return done != 0;
}

}  // namespace zeroth::comm
