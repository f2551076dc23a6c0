#include "memory/tensor_tally.h"

#include <array>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <unordered_map>
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

// The blocks that are here, by the address of their numbers. Convolutions take and give back memory
// by its address alone (Allocator::raw_allocate), maybe some that an allocator of before us gave:
// that is not found here, and nothing around it needs to be read. Split, so that threads seldom
// meet.
class Blocks {
 public:
  struct Block {
    void* begin = nullptr;  // as malloc gave it
    Counting by;
    std::int64_t bytes = 0;
  };

  void add(void* data, Block block) {
    Part& part = part_of(data);
    const std::lock_guard lock(part.mutex);
    part.blocks.emplace(data, std::move(block));
  }

  // What is known of it, which is forgotten.
  [[nodiscard]] std::optional<Block> take(void* data) noexcept {
    Part& part = part_of(data);
    const std::lock_guard lock(part.mutex);
    auto node = part.blocks.extract(data);
    return node.empty() ? std::nullopt : std::optional(std::move(node.mapped()));
  }

 private:
  struct alignas(64) Part {
    std::mutex mutex;
    std::unordered_map<void*, Block> blocks;
  };

  // Multiplied, since the low bits are alike in all large blocks.
  [[nodiscard]] Part& part_of(void* data) noexcept {
    return parts_[(reinterpret_cast<std::uintptr_t>(data) * 0x9E3779B97F4A7C15U) >> 60U];
  }

  std::array<Part, 16> parts_;
};

// Never destroyed: tensors of static lifetime are freed after everything else.
Blocks& all_blocks() {
  static auto* const blocks = new Blocks;
  return *blocks;
}

void free_counted(void* data) {
  if (data == nullptr) {
    return;
  }
  c10::profiledCPUMemoryReporter().Delete(data);
  // Forgotten first: once freed, another thread may get the address.
  const std::optional<Blocks::Block> block = all_blocks().take(data);
  if (!block) {
    c10::free_cpu(data);
    return;
  }
  if (block->by.tally != nullptr) {
    block->by.tally->add(block->by.purpose, -block->bytes);
  }
  std::free(block->begin);
}

// Aligned by hand. Not by posix_memalign, as LibTorch's own allocator does: glibc 2.36 asks its
// free lists for more than it then takes, so a block that was freed never serves a request of the
// same size, and the heap grows by half.
void* allocate_counted(std::size_t bytes) {
  constexpr std::size_t kAlignment = 64;  // LibTorch's own
  if (bytes == 0) {
    return nullptr;
  }
  void* const begin = std::malloc(bytes + kAlignment - 1);
  if (begin == nullptr) {
    throw Error(ErrorKind::kMemory, fmt::format("cannot allocate {} bytes for a tensor", bytes));
  }
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  auto* const data = reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
  const auto size = static_cast<std::int64_t>(bytes);
  all_blocks().add(data, {begin, counting, size});
  if (counting.tally != nullptr) {
    counting.tally->add(counting.purpose, size);
  }
  return data;
}

// In place of LibTorch's own, with a note of who pays for it.
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
