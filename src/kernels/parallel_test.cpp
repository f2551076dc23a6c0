#include "kernels/parallel.h"

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace zeroth::kernels {
namespace {

constexpr int kThreads = 3;

TEST(Parallel, ARangeIsVisitedOnceWholly) {
  const ThreadsInUse threads(kThreads);
  for (const std::int64_t count : {0, 1, 2, 3, 7, 100}) {
    std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
    for_each_range(count, 1, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t i = first; i < last; ++i) {
        ++visits[static_cast<std::size_t>(i)];
      }
    });
    for (const auto& number : visits) {
      EXPECT_EQ(number, 1) << "of " << count;
    }
  }
}

// A plain loop does the work of all threads on one, and nothing but the time tells.
TEST(Parallel, EveryThreadHasItsPieceOfARange) {
  const ThreadsInUse threads(kThreads);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  for_each_range(3000, 100, [&](std::int64_t first, std::int64_t last) {
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
    EXPECT_EQ(last - first, 1000);
  });
  EXPECT_EQ(seen.size(), std::size_t{kThreads});
}

TEST(Parallel, WhatIsNotWorthASecondThreadStaysWhole) {
  const ThreadsInUse threads(kThreads);
  int pieces = 0;
  for_each_range(199, 100, [&](std::int64_t first, std::int64_t last) {
    ++pieces;
    EXPECT_EQ(first, 0);
    EXPECT_EQ(last, 199);
  });
  EXPECT_EQ(pieces, 1);
}

TEST(Parallel, AnOperationHasOneThreadOrAll) {
  const ThreadsInUse threads(kThreads);
  EXPECT_EQ(threads_for(1000), 1);
  EXPECT_EQ(threads_for(8'000'000), kThreads);
  EXPECT_EQ(threads_for(1'000'000'000), kThreads);
}

TEST(Parallel, AnErrorOfAnyThreadArrives) {
  const ThreadsInUse threads(kThreads);
  const auto fails_late = [](std::int64_t, std::int64_t last) {
    if (last == 300) {
      throw std::runtime_error("the last piece");
    }
  };
  EXPECT_THROW(for_each_range(300, 1, fails_late), std::runtime_error);
  EXPECT_THROW(
      for_each_item(30, kThreads, [](std::int64_t, int) { throw std::runtime_error("each"); }),
      std::runtime_error);
}

}  // namespace
}  // namespace zeroth::kernels
