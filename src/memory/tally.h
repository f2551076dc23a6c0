#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string_view>

namespace zeroth::memory {

// What a buffer is for; the same purposes that a plan speaks of.
enum class Purpose {
  kWeights,
  kGradients,
  kMaster,
  kMoments,
  kActivations,
  kLogits,
  kBuffers,
  kGatherWindow,
  kCount,
};

inline constexpr auto kPurposes = static_cast<std::size_t>(Purpose::kCount);

[[nodiscard]] std::string_view purpose_name(Purpose purpose) noexcept;

// Bytes by purpose.
using ByPurpose = std::array<std::int64_t, kPurposes>;

// Counts the bytes that are really allocated, by purpose. Shared by all buffers of one rank.
class Tally {
 public:
  void add(Purpose purpose, std::int64_t bytes) noexcept;
  [[nodiscard]] std::int64_t bytes(Purpose purpose) const noexcept;
  [[nodiscard]] std::int64_t model_state_bytes()
      const noexcept;  // weights, gradients, master, moments
  [[nodiscard]] std::int64_t total_bytes() const noexcept;

  // What was allocated when the total was largest.
  [[nodiscard]] ByPurpose at_peak() const noexcept;
  [[nodiscard]] std::int64_t peak_bytes() const noexcept;

 private:
  void note_peak(std::int64_t total) noexcept;

  std::array<std::atomic<std::int64_t>, kPurposes> bytes_{};
  std::atomic<std::int64_t> total_{0};
  std::atomic<std::int64_t> peak_{0};
  mutable std::mutex at_peak_mutex_;
  ByPurpose at_peak_{};
};

}  // namespace zeroth::memory
