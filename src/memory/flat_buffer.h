#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "memory/tally.h"

namespace zeroth::memory {

// A zeroed, 64-byte aligned block of memory with a purpose, counted in a tally for as long as it
// lives. Large blocks ask the kernel for huge pages. Move-only; the owner's spans die with it.
class FlatBuffer {
 public:
  FlatBuffer() = default;
  // kMemory if the system has no `bytes` left.
  FlatBuffer(std::int64_t bytes, Purpose purpose, std::shared_ptr<Tally> tally);
  ~FlatBuffer();
  FlatBuffer(FlatBuffer&& other) noexcept;
  FlatBuffer& operator=(FlatBuffer&& other) noexcept;

  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }

  [[nodiscard]] std::byte* data() const noexcept { return data_; }

  template <typename T>
  [[nodiscard]] std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data_), static_cast<std::size_t>(bytes_) / sizeof(T)};
  }

  void set_zero() const noexcept;

 private:
  void release() noexcept;

  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  Purpose purpose_ = Purpose::kBuffers;
  std::shared_ptr<Tally> tally_;
};

}  // namespace zeroth::memory
