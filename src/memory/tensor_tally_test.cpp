#include "memory/tensor_tally.h"

#include <thread>
#include <vector>

#include "memory/process_memory.h"
#include <gtest/gtest.h>

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <c10/core/CPUAllocator.h>

namespace zeroth::memory {
namespace {

TEST(TensorScope, CountsTensorsUntilTheyAreFreed) {
  const auto tally = std::make_shared<Tally>();
  at::Tensor kept;
  {
    const TensorScope scope(tally, Purpose::kActivations);
    kept = at::ones({1000});
    {
      const TensorScope inner(tally, Purpose::kLogits);
      const at::Tensor passing = at::ones({500});
      EXPECT_EQ(tally->bytes(Purpose::kLogits), 2000);
    }
    EXPECT_EQ(tally->bytes(Purpose::kLogits), 0);
  }
  const at::Tensor uncounted = at::ones({100'000});
  EXPECT_EQ(tally->bytes(Purpose::kActivations), 4000);
  EXPECT_EQ(tally->peak_bytes(), 6000);
  EXPECT_EQ(tally->at_peak()[static_cast<std::size_t>(Purpose::kLogits)], 2000);
  kept.reset();
  EXPECT_EQ(tally->total_bytes(), 0);
}

TEST(TensorScope, TensorsMayOutliveTheTally) {
  at::Tensor kept;
  {
    const TensorScope scope(std::make_shared<Tally>(), Purpose::kWeights);
    kept = at::ones({8});
  }
  kept.reset();
}

// As convolutions use it, whose scratch memory may come from before.
TEST(TensorScope, MemoryIsGivenBackByItsAddress) {
  const auto tally = std::make_shared<Tally>();
  void* const early = c10::GetDefaultCPUAllocator()->raw_allocate(1000);
  void* const large = c10::GetDefaultCPUAllocator()->raw_allocate(1 << 26);
  {
    const TensorScope scope(tally, Purpose::kActivations);
    void* const block = c10::GetCPUAllocator()->raw_allocate(1000);
    EXPECT_EQ(tally->total_bytes(), 1000);
    c10::GetCPUAllocator()->raw_deallocate(block);
  }
  EXPECT_EQ(tally->total_bytes(), 0);
  c10::GetCPUAllocator()->raw_deallocate(early);
  c10::GetCPUAllocator()->raw_deallocate(large);
}

TEST(TensorScope, AnotherThreadMayFree) {
  const auto tally = std::make_shared<Tally>();
  std::vector<at::Tensor> kept;
  {
    const TensorScope scope(tally, Purpose::kActivations);
    for (int i = 0; i < 1000; ++i) {
      kept.push_back(at::empty({100 + i}));
    }
    kept.push_back(at::empty({0}));  // no memory at all
  }
  EXPECT_EQ(tally->total_bytes(), 4 * (100 * 1000 + 999 * 1000 / 2));
  std::jthread([&] { kept.clear(); }).join();
  EXPECT_EQ(tally->total_bytes(), 0);
}

TEST(Memory, TheKernelTellsTheProportionalSetSize) {
  EXPECT_GT(proportional_set_bytes(), 1 << 20);
  EXPECT_LE(proportional_set_bytes(), peak_resident_bytes() + (8 << 20));
}

}  // namespace
}  // namespace zeroth::memory
