#pragma once

#include <cstdint>
#include <deque>
#include <memory>

#include "base/in_flight.h"
#include "memory/flat_buffer.h"

namespace zeroth::zero {

// Writing that the unit and the pool both may have to wait for.
using SharedWrite = std::shared_ptr<InFlight>;

// Page-aligned buffers of one size through which state goes to and from files.
class StagingPool {
 public:
  // `capacity`: buffers that exist before one waits for a write to give its own back.
  StagingPool(std::int64_t bytes, std::int64_t capacity, std::shared_ptr<memory::Tally> tally);

  [[nodiscard]] memory::FlatBuffer take();
  void give(memory::FlatBuffer buffer, SharedWrite write = nullptr);

  // Whether take() needs neither more memory than the capacity nor a wait.
  [[nodiscard]] bool has_free() const noexcept { return !free_.empty() || made_ < capacity_; }

 private:
  struct Entry {
    memory::FlatBuffer buffer;
    SharedWrite write;
  };

  std::int64_t bytes_;
  std::int64_t capacity_;
  std::shared_ptr<memory::Tally> tally_;
  std::int64_t made_ = 0;
  std::deque<memory::FlatBuffer> free_;
  std::deque<Entry> writing_;
};

}  // namespace zeroth::zero
