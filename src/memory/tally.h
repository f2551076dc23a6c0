#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <string_view>

namespace zeroth::memory {

// What a buffer is for; the same purposes that a plan speaks of.
enum class Purpose { kWeights, kGradients, kMaster, kMoments, kBuffers, kCount };

[[nodiscard]] std::string_view purpose_name(Purpose purpose) noexcept;

// Counts the bytes that are really allocated, by purpose. Shared by all buffers of one rank.
class Tally {
 public:
  void add(Purpose purpose, std::int64_t bytes) noexcept;
  [[nodiscard]] std::int64_t bytes(Purpose purpose) const noexcept;
  [[nodiscard]] std::int64_t model_state_bytes()
      const noexcept;  // weights, gradients, master, moments

 private:
  std::array<std::atomic<std::int64_t>, static_cast<std::size_t>(Purpose::kCount)> bytes_{};
};

// The peak resident memory of this process so far, from the kernel.
[[nodiscard]] std::int64_t peak_resident_bytes();

}  // namespace zeroth::memory
