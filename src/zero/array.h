#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "memory/flat_buffer.h"
#include "offload/swap_space.h"

namespace zeroth::zero {

// Where state rests between its uses. The memory of a processor's device is the host's.
enum class Place { kMemory, kFile };

// Elements of one width that rest in memory or on file; zeros at first.
class Array {
 public:
  // None at all.
  Array() = default;
  // In memory.
  Array(std::int64_t count,
        std::int64_t width,
        memory::Purpose purpose,
        const std::shared_ptr<memory::Tally>& tally);
  // On file.
  Array(std::int64_t count, std::int64_t width, std::shared_ptr<offload::SwapSpace> space);

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

  [[nodiscard]] bool on_file() const noexcept { return space_ != nullptr; }

  [[nodiscard]] std::int64_t width() const noexcept { return width_; }

  [[nodiscard]] std::int64_t bytes() const noexcept { return count_ * width_; }

  // In memory alone.
  [[nodiscard]] std::byte* data() const noexcept { return memory_.data(); }

  template <typename T>
  [[nodiscard]] std::span<T> as() const noexcept {
    return memory_.as<T>();
  }

  // On file alone. `begin` is a multiple of shard::kPieceElements; whole pages move, so `memory` is
  // page-aligned and has room for offload::aligned_up(count * width) bytes.
  [[nodiscard]] InFlight start_reading(std::int64_t begin,
                                       std::int64_t count,
                                       std::byte* memory) const;
  [[nodiscard]] InFlight start_writing(std::int64_t begin,
                                       std::int64_t count,
                                       const std::byte* memory) const;

  // Copies of any elements, wherever they rest.
  void copy_out(std::int64_t begin, std::span<std::byte> values) const;
  void copy_in(std::int64_t begin, std::span<const std::byte> values) const;

 private:
  std::int64_t count_ = 0;
  std::int64_t width_ = 0;
  memory::FlatBuffer memory_;
  std::shared_ptr<offload::SwapSpace> space_;
  std::int64_t offset_ = 0;
};

}  // namespace zeroth::zero
