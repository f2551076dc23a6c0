#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "memory/tally.h"

namespace zeroth::zero {

// A buffer that peers can reach, counted by purpose for as long as it lives.
class CountedBuffer {
 public:
  CountedBuffer() = default;
  CountedBuffer(comm::BufferPtr buffer,
                std::int64_t counted_bytes,
                memory::Purpose purpose,
                std::shared_ptr<memory::Tally> tally);
  CountedBuffer(CountedBuffer&& other) noexcept;
  CountedBuffer& operator=(CountedBuffer&& other) noexcept;
  ~CountedBuffer();

  [[nodiscard]] const comm::BufferPtr& get() const noexcept { return buffer_; }

  [[nodiscard]] bool empty() const noexcept { return buffer_ == nullptr; }

  [[nodiscard]] std::byte* data() const noexcept { return buffer_->data(); }

 private:
  void release() noexcept;

  comm::BufferPtr buffer_;
  std::int64_t bytes_ = 0;
  memory::Purpose purpose_ = memory::Purpose::kBuffers;
  std::shared_ptr<memory::Tally> tally_;
};

// A few buffers of one size that units take for a while and give back. All ranks take and give in
// the same order, so that a slot is the same one everywhere.
class SlotPool {
 public:
  SlotPool() = default;
  explicit SlotPool(std::vector<CountedBuffer> slots);

  [[nodiscard]] comm::BufferPtr take();
  void give(comm::BufferPtr slot);

 private:
  std::vector<CountedBuffer> owned_;
  std::vector<comm::BufferPtr> free_;
};

}  // namespace zeroth::zero
