#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace zeroth::comm {

// While it lives, a thread waits beside the caller, who is inside MPI's start; when the time is
// over it calls `give_up`, which does not return.
class MpiStartLimit {
 public:
  MpiStartLimit(double seconds, std::function<void(const Error&)> give_up);
  MpiStartLimit(const MpiStartLimit&) = delete;
  MpiStartLimit& operator=(const MpiStartLimit&) = delete;
  ~MpiStartLimit();

 private:
  void watch(double seconds);

  std::function<void(const Error&)> give_up_;
  std::mutex mutex_;
  std::condition_variable ended_;
  bool started_ = false;  // MPI has
  std::thread thread_;
};

}  // namespace zeroth::comm
