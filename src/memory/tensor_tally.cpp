#include "memory/tensor_tally.h"

#include <cstdint>
#include <new>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

namespace zeroth::memory {
namespace {

struct Counting {
  std::shared_ptr<Tally> tally;
  Purpose purpose = Purpose::kActivations;
};

thread_local Counting counting;

constexpr std::uint64_t kMark = 0x9E3779B97F4A7C15;  // no block of before has it by chance

// Lies in front of the bytes that a tensor gets.
struct Header {
  Counting counting;
  std::int64_t bytes = 0;
  std::uint64_t mark = kMark;
};

constexpr std::size_t kHeaderBytes = 64;  // keeps LibTorch's alignment
static_assert(sizeof(Header) <= kHeaderBytes);

// Convolutions take and give back memory by its address alone (Allocator::raw_allocate), maybe some
// that an allocator of before us gave: that has no header. The bytes in front of it can be read,
// since blocks are aligned to 64 and the heap's own word lies before them.
void free_counted(void* data) {
  c10::profiledCPUMemoryReporter().Delete(data);
  void* const block = static_cast<std::byte*>(data) - kHeaderBytes;
  auto* const header = static_cast<Header*>(block);
  if (header->mark != kMark) {
    c10::free_cpu(data);
    return;
  }
  header->mark = 0;
  if (header->counting.tally != nullptr) {
    header->counting.tally->add(header->counting.purpose, -header->bytes);
  }
  header->~Header();
  c10::free_cpu(block);
}

// LibTorch's own allocation with a header in front.
class CountingAllocator final : public c10::Allocator {
 public:
  [[nodiscard]] c10::DataPtr allocate(std::size_t bytes) const override {
    void* const block = c10::alloc_cpu(bytes + kHeaderBytes);
    auto* const header = new (block) Header{counting, static_cast<std::int64_t>(bytes)};
    if (header->counting.tally != nullptr) {
      header->counting.tally->add(header->counting.purpose, header->bytes);
    }
    void* const data = static_cast<std::byte*>(block) + kHeaderBytes;
    c10::profiledCPUMemoryReporter().New(data, bytes);  // as LibTorch's own allocator does
    return {data, data, &free_counted, c10::Device(c10::DeviceType::CPU)};
  }

  [[nodiscard]] c10::DeleterFnPtr raw_deleter() const override { return &free_counted; }
};

// Once per process, at the first scope; tensors of before stay with the allocator they came from.
void install() {
  static CountingAllocator allocator;
  static const bool installed = [] {
    c10::SetCPUAllocator(&allocator, /*priority=*/1);
    return true;
  }();
  (void)installed;
}

}  // namespace

TensorScope::TensorScope(std::shared_ptr<Tally> tally, Purpose purpose)
    : outer_tally_(std::exchange(counting.tally, std::move(tally))),
      outer_purpose_(std::exchange(counting.purpose, purpose)) {
  install();
}

TensorScope::~TensorScope() {
  counting = {std::move(outer_tally_), outer_purpose_};
}

}  // namespace zeroth::memory
