#include "memory/tally.h"

#include <sys/resource.h>

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
    case Purpose::kBuffers:
      return "buffers";
    case Purpose::kCount:
      break;
  }
  return "unknown";
}

void Tally::add(Purpose purpose, std::int64_t bytes) noexcept {
  bytes_[static_cast<std::size_t>(purpose)].fetch_add(bytes, std::memory_order_relaxed);
}

std::int64_t Tally::bytes(Purpose purpose) const noexcept {
  return bytes_[static_cast<std::size_t>(purpose)].load(std::memory_order_relaxed);
}

std::int64_t Tally::model_state_bytes() const noexcept {
  return bytes(Purpose::kWeights) + bytes(Purpose::kGradients) + bytes(Purpose::kMaster) +
         bytes(Purpose::kMoments);
}

std::int64_t peak_resident_bytes() {
  struct rusage usage {};

  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::int64_t>(usage.ru_maxrss) * 1024;
}

}  // namespace zeroth::memory
