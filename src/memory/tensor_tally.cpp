#include "memory/tensor_tally.h"

#include <cstdint>
#include <cstdlib>
#include <new>
#include <utility>

#include "base/error.h"
#include <fmt/format.h>

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
  void* block = nullptr;  // as malloc gave it
  std::uint64_t mark = kMark;
};

constexpr std::size_t kAlignment = 64;  // LibTorch's own
static_assert(sizeof(Header) <= kAlignment);

// Convolutions take and give back memory by its address alone (Allocator::raw_allocate), maybe some
// that an allocator of before us gave: that has no header. The bytes in front of it can be read,
// since blocks are aligned to 64 and the heap's own word lies before them.
void free_counted(void* data) {
  c10::profiledCPUMemoryReporter().Delete(data);
  auto* const header =
      std::launder(reinterpret_cast<Header*>(static_cast<std::byte*>(data) - kAlignment));
  if (header->mark != kMark) {
    c10::free_cpu(data);
    return;
  }
  header->mark = 0;
  if (header->counting.tally != nullptr) {
    header->counting.tally->add(header->counting.purpose, -header->bytes);
  }
  void* const block = header->block;
  header->~Header();
  std::free(block);
}

// Aligned by hand, with the header right before the data. Not by posix_memalign, as LibTorch's own
// allocator does: glibc 2.36 asks its free lists for more than it then takes, so a block that was
// freed never serves a request of the same size, and the heap grows by half.
void* allocate_counted(std::size_t bytes) {
  void* const block = std::malloc(bytes + 2 * kAlignment);
  if (block == nullptr) {
    throw Error(ErrorKind::kMemory, fmt::format("cannot allocate {} bytes for a tensor", bytes));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  const std::uintptr_t first = (address + 2 * kAlignment - 1) / kAlignment * kAlignment;
  auto* const data = reinterpret_cast<std::byte*>(first);
  new (data - kAlignment) Header{counting, static_cast<std::int64_t>(bytes), block};
  if (counting.tally != nullptr) {
    counting.tally->add(counting.purpose, static_cast<std::int64_t>(bytes));
  }
  return data;
}

class CountingAllocator final : public c10::Allocator {
 public:
  [[nodiscard]] c10::DataPtr allocate(std::size_t bytes) const override {
    void* const data = allocate_counted(bytes);
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
