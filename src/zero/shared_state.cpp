#include "zero/shared_state.h"

#include <utility>

#include "base/check.h"

namespace zeroth::zero {
namespace {

// A unit in use, the next one on its way, and one that others borrow from (a tied embedding).
constexpr int kSlots = 3;

}  // namespace

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

SharedState::SharedState(std::shared_ptr<comm::Communicator> comm,
                         const ZeroOptions& options,
                         std::int64_t largest_numel,
                         std::shared_ptr<memory::Tally> tally)
    : comm_(std::move(comm)), options_(options), tally_(std::move(tally)) {
  const auto element_bytes = static_cast<std::int64_t>(c10::elementSize(options.dtype));
  std::vector<CountedBuffer> gathered;
  std::vector<CountedBuffer> micro_gradients;
  for (int slot = 0; slot < kSlots; ++slot) {
    if (options.policy.shard_parameters) {
      const std::int64_t bytes = largest_numel * element_bytes;
      // One copy serves all ranks of the host; each counts its share.
      gathered.emplace_back(
          comm_->allocate_shared(bytes), bytes / comm_->size(), memory::Purpose::kBuffers, tally_);
    }
    if (options.policy.shard_gradients) {
      const std::int64_t bytes = largest_numel * static_cast<std::int64_t>(sizeof(float));
      micro_gradients.emplace_back(
          comm_->allocate(bytes), bytes, memory::Purpose::kBuffers, tally_);
    }
  }
  gathered_ = SlotPool(std::move(gathered));
  micro_gradients_ = SlotPool(std::move(micro_gradients));
}

}  // namespace zeroth::zero
