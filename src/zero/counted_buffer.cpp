#include "zero/counted_buffer.h"

#include <utility>

#include "base/check.h"

namespace zeroth::zero {

CountedBuffer::CountedBuffer(comm::BufferPtr buffer,
                             std::int64_t counted_bytes,
                             memory::Purpose purpose,
                             std::shared_ptr<memory::Tally> tally)
    : buffer_(std::move(buffer)),
      bytes_(counted_bytes),
      purpose_(purpose),
      tally_(std::move(tally)) {
  tally_->add(purpose_, bytes_);
}

CountedBuffer::CountedBuffer(CountedBuffer&& other) noexcept
    : buffer_(std::move(other.buffer_)),
      bytes_(std::exchange(other.bytes_, 0)),
      purpose_(other.purpose_),
      tally_(std::move(other.tally_)) {
}

CountedBuffer& CountedBuffer::operator=(CountedBuffer&& other) noexcept {
  if (this != &other) {
    release();
    buffer_ = std::move(other.buffer_);
    bytes_ = std::exchange(other.bytes_, 0);
    purpose_ = other.purpose_;
    tally_ = std::move(other.tally_);
  }
  return *this;
}

CountedBuffer::~CountedBuffer() {
  release();
}

void CountedBuffer::release() noexcept {
  if (tally_ != nullptr) {
    tally_->add(purpose_, -bytes_);
    tally_ = nullptr;
  }
}

SlotPool::SlotPool(std::vector<CountedBuffer> slots) : owned_(std::move(slots)) {
  for (auto slot = owned_.rbegin(); slot != owned_.rend(); ++slot) {
    free_.push_back(slot->get());
  }
}

comm::BufferPtr SlotPool::take() {
  ZEROTH_CHECK(!free_.empty(), "all {} slots are in use", owned_.size());
  comm::BufferPtr slot = std::move(free_.back());
  free_.pop_back();
  return slot;
}

void SlotPool::give(comm::BufferPtr slot) {
  free_.push_back(std::move(slot));
}

}  // namespace zeroth::zero
