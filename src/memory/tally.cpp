#include "memory/tally.h"

#include <numeric>
#include <string>

namespace zeroth::memory {

std::string_view purpose_name(Purpose purpose) noexcept {
  switch (purpose) {
    case Purpose::kWeights:
      return "weights";
    case Purpose::kGradients:
      return "gradients";
    case Purpose::kMaster:
      return "master";
    case Purpose::kMoments:
      return "moments";
    case Purpose::kActivations:
      return "activations";
    case Purpose::kLogits:
      return "logits";
    case Purpose::kBuffers:
      return "buffers";
    case Purpose::kGatherWindow:
      return "gather_window";
    case Purpose::kCount:
      break;
  }
  return "unknown";
}

void Tally::add(Purpose purpose, std::int64_t bytes) noexcept {
  bytes_[static_cast<std::size_t>(purpose)].fetch_add(bytes, std::memory_order_relaxed);
  const std::int64_t total = total_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (bytes > 0 && total > peak_.load(std::memory_order_relaxed)) {
    note_peak(total);
  }
}

void Tally::note_peak(std::int64_t total) noexcept {
  const std::lock_guard lock(at_peak_mutex_);
  if (total > peak_.load()) {
    peak_.store(total);
    for (std::size_t i = 0; i < kPurposes; ++i) {
      at_peak_[i] = bytes_[i].load(std::memory_order_relaxed);
    }
  }
}

std::int64_t Tally::total_bytes() const noexcept {
  return total_.load(std::memory_order_relaxed);
}

ByPurpose Tally::at_peak() const noexcept {
  const std::lock_guard lock(at_peak_mutex_);
  return at_peak_;
}

std::int64_t Tally::peak_bytes() const noexcept {
  return peak_.load(std::memory_order_relaxed);
}

std::int64_t Tally::bytes(Purpose purpose) const noexcept {
  return bytes_[static_cast<std::size_t>(purpose)].load(std::memory_order_relaxed);
}

std::int64_t Tally::model_state_bytes() const noexcept {
  return bytes(Purpose::kWeights) + bytes(Purpose::kGradients) + bytes(Purpose::kMaster) +
         bytes(Purpose::kMoments);
}

}  // namespace zeroth::memory
