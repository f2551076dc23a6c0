#include "zero/staging.h"

#include <utility>

namespace zeroth::zero {

using memory::FlatBuffer;

StagingPool::StagingPool(std::int64_t bytes,
                         std::int64_t capacity,
                         std::shared_ptr<memory::Tally> tally)
    : bytes_(bytes), capacity_(capacity), tally_(std::move(tally)) {
}

FlatBuffer StagingPool::take() {
  if (!free_.empty()) {
    FlatBuffer buffer = std::move(free_.front());
    free_.pop_front();
    return buffer;
  }
  if (made_ < capacity_ || writing_.empty()) {
    ++made_;
    return FlatBuffer(bytes_, memory::Purpose::kBuffers, tally_);
  }
  Entry oldest = std::move(writing_.front());
  writing_.pop_front();
  oldest.write->wait();
  return std::move(oldest.buffer);
}

void StagingPool::give(FlatBuffer buffer, SharedWrite write) {
  if (write == nullptr) {
    free_.push_back(std::move(buffer));
  } else {
    writing_.push_back({std::move(buffer), std::move(write)});
  }
}

}  // namespace zeroth::zero
