#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include <mpi.h>

// The one folder that sees MPI's types.
namespace zeroth::comm {

// MPI for as long as the object lives, and what the ranks know of each other.
class MpiSession {
 public:
  MpiSession();
  MpiSession(const MpiSession&) = delete;
  MpiSession& operator=(const MpiSession&) = delete;
  ~MpiSession();

  [[nodiscard]] int rank() const noexcept { return rank_; }

  [[nodiscard]] int size() const noexcept { return size_; }

  [[nodiscard]] int host_of(int rank) const noexcept {
    return hosts_[static_cast<std::size_t>(rank)];
  }

  [[nodiscard]] int num_hosts() const noexcept { return static_cast<int>(ranks_.size()); }

  // World ranks of a host, ascending; the first is its leader.
  [[nodiscard]] const std::vector<int>& ranks_of(int host) const noexcept {
    return ranks_[static_cast<std::size_t>(host)];
  }

  [[nodiscard]] bool is_local(int rank) const noexcept { return host_of(rank) == host_of(rank_); }

  [[nodiscard]] MPI_Comm collectives() const noexcept { return collectives_; }

  [[nodiscard]] MPI_Comm messages() const noexcept { return messages_; }

  // A name that this run's processes share and no other run has.
  [[nodiscard]] const std::string& run_name() const noexcept { return run_name_; }

  // After a failure nobody waits for the others in MPI_Finalize: mpirun ends them.
  void leave_unfinished() noexcept { finalise_ = false; }

 private:
  void find_hosts();
  void agree_on_name();

  int rank_ = 0;
  int size_ = 1;
  bool finalise_ = true;
  MPI_Comm collectives_ = MPI_COMM_NULL;
  MPI_Comm messages_ = MPI_COMM_NULL;
  std::vector<int> hosts_;               // by world rank
  std::vector<std::vector<int>> ranks_;  // by host
  std::string run_name_;
};

// kCommunication with MPI's own words.
void check_mpi(int code, const char* what);

// Transfers that were started together. Large ones pass in pieces, since MPI counts in int.
class MpiRequests {
 public:
  MpiRequests() = default;
  MpiRequests(const MpiRequests&) = delete;
  MpiRequests& operator=(const MpiRequests&) = delete;
  ~MpiRequests();

  void send(std::span<const std::byte> bytes, int to, int tag, MPI_Comm communicator);
  void receive(std::span<std::byte> bytes, int from, int tag, MPI_Comm communicator);
  void broadcast(std::span<std::byte> bytes, int root, MPI_Comm communicator);
  [[nodiscard]] bool all_done();

 private:
  std::vector<MPI_Request> requests_;
};

}  // namespace zeroth::comm
