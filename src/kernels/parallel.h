#pragma once

#include <cstdint>
#include <functional>

namespace zeroth::kernels {

// How many threads an operation of so many multiplications and additions is worth: one below a few
// million, where a second costs more than it gives, else all. Never a part of them: GCC's run-time
// library ends the threads that a region has no use for, and makes them anew for the next one.
// Follows from the size and the process's number of threads alone, so the same operation is always
// computed in the same way.
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

// Calls visit(first, last) for [0, count) in one piece for each thread, or in one piece as a whole
// where a second thread would have less than `grain` to do; products within it run on one thread.
// Errors as above. (at::parallel_for is a plain loop in
// files that are compiled without OpenMP's flag, as all but parallel.cpp are.)
void for_each_range(std::int64_t count,
                    std::int64_t grain,
                    const std::function<void(std::int64_t first, std::int64_t last)>& visit);

}  // namespace zeroth::kernels
