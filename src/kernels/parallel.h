#pragma once

#include <cstdint>
#include <functional>

namespace zeroth::kernels {

// How many threads an operation of so many multiplications and additions is worth: below a few
// million a second thread costs more than it gives. Follows from the size and the process's number
// of threads alone, so the same operation is always computed in the same way.
[[nodiscard]] int threads_for(std::int64_t operations);

// While it lives, this thread's products run on so many threads.
class ThreadsInUse {
 public:
  explicit ThreadsInUse(int threads);
  ~ThreadsInUse();
  ThreadsInUse(const ThreadsInUse&) = delete;
  ThreadsInUse& operator=(const ThreadsInUse&) = delete;

 private:
  int before_;
};

// Runs work(item, thread) for every item of [0, count), thread in [0, threads): low items begin
// first, each on the thread that is free. `work` runs on one thread, products within it too. The
// first error is thrown here when all threads are done.
void for_each_item(std::int64_t count,
                   int threads,
                   const std::function<void(std::int64_t item, int thread)>& work);

}  // namespace zeroth::kernels
