#include "kernels/parallel.h"

#include <algorithm>
#include <exception>

#include <omp.h>

namespace zeroth::kernels {

int threads_for(std::int64_t operations) {
  constexpr std::int64_t kWorthASecondThread = 8'000'000;
  return operations < kWorthASecondThread ? 1 : omp_get_max_threads();
}

ThreadsInUse::ThreadsInUse(int threads) : before_(omp_get_max_threads()) {
  omp_set_num_threads(threads);
}

ThreadsInUse::~ThreadsInUse() {
  omp_set_num_threads(before_);
}

namespace {

// The first error of a region's threads, which none may leave by throwing.
class FirstError {
 public:
  template <typename Work>
  void catch_from(const Work& work) {
    try {
      work();
    } catch (...) {
#pragma omp critical(zeroth_first_error)
      error_ = error_ ? error_ : std::current_exception();
    }
  }

  void rethrow() const {
    if (error_) {
      std::rethrow_exception(error_);
    }
  }

 private:
  std::exception_ptr error_;
};

}  // namespace

void for_each_item(std::int64_t count,
                   int threads,
                   const std::function<void(std::int64_t item, int thread)>& work) {
  FirstError error;
#pragma omp parallel num_threads(threads)
  {
    omp_set_num_threads(1);  // of this region's tasks alone: products within an item
#pragma omp for schedule(dynamic, 1)
    for (std::int64_t item = 0; item < count; ++item) {
      error.catch_from([&] { work(item, omp_get_thread_num()); });
    }
  }
  error.rethrow();
}

void for_each_range(std::int64_t count,
                    std::int64_t grain,
                    const std::function<void(std::int64_t first, std::int64_t last)>& visit) {
  const int threads = count < 2 * grain ? 1 : omp_get_max_threads();
  if (threads == 1) {
    visit(0, count);
    return;
  }
  const std::int64_t piece = (count + threads - 1) / threads;
  FirstError error;
#pragma omp parallel num_threads(threads)
  {
    omp_set_num_threads(1);  // as above
    // A thread has the same piece in every operation: what it wrote may still be in its cache.
    const std::int64_t first = omp_get_thread_num() * piece;
    if (first < count) {
      error.catch_from([&] { visit(first, std::min(count, first + piece)); });
    }
  }
  error.rethrow();
}

}  // namespace zeroth::kernels
