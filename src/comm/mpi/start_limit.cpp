#include "comm/mpi/start_limit.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace zeroth::comm {

MpiStartLimit::MpiStartLimit(double seconds, std::function<void(const Error&)> give_up)
    : give_up_(std::move(give_up)) {
  if (give_up_) {
    thread_ = std::thread([this, seconds] { watch(seconds); });
  }
}

MpiStartLimit::~MpiStartLimit() {
  if (thread_.joinable()) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      started_ = true;
    }
    ended_.notify_all();
    thread_.join();
  }
}

void MpiStartLimit::watch(double seconds) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!ended_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return started_; })) {
    give_up_(Error(ErrorKind::kCommunication,
                   fmt::format("MPI_Init did not end within {} s: it waits for a rank that has not "
                               "started\n  See why not all ranks of the launcher did, or give "
                               "more time with --start_timeout.",
                               seconds)));
  }
}

}  // namespace zeroth::comm
