#include "kernels/parallel.h"

#include <algorithm>
#include <exception>

#include <omp.h>

namespace zeroth::kernels {

int threads_for(std::int64_t operations) {
  constexpr std::int64_t kOperationsPerThread = 4'000'000;
  return static_cast<int>(
      std::clamp<std::int64_t>(operations / kOperationsPerThread, 1, omp_get_max_threads()));
}

ThreadsInUse::ThreadsInUse(int threads) : before_(omp_get_max_threads()) {
  omp_set_num_threads(threads);
}

ThreadsInUse::~ThreadsInUse() {
  omp_set_num_threads(before_);
}

void for_each_item(std::int64_t count,
                   int threads,
                   const std::function<void(std::int64_t item, int thread)>& work) {
  std::exception_ptr error;
#pragma omp parallel num_threads(threads)
  {
    omp_set_num_threads(1);  // of this region's tasks alone: products within an item
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t item = 0; item < count; ++item) {
      try {
        work(item, omp_get_thread_num());
      } catch (...) {
#pragma omp critical(zeroth_for_each_item)
        error = error ? error : std::current_exception();
      }
    }
  }
  if (error) {
    std::rethrow_exception(error);
  }
}

}  // namespace zeroth::kernels
