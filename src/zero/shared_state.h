#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "memory/tally.h"
#include "zero/stage_policy.h"

#include <ATen/core/Tensor.h>

namespace zeroth::zero {

struct ZeroOptions {
  StagePolicy policy;
  at::ScalarType dtype = at::kFloat;           // in which units compute
  int num_moments = 2;                         // per trainable element, as the optimizer says
  std::int64_t bucket_elements = 500'000'000;  // of one reduction; changes no bit
};

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

// What all units of an engine share.
class SharedState {
 public:
  // `largest_numel`: padded elements of the largest unit. Collective.
  SharedState(std::shared_ptr<comm::Communicator> comm,
              const ZeroOptions& options,
              std::int64_t largest_numel,
              std::shared_ptr<memory::Tally> tally);

  [[nodiscard]] comm::Communicator& comm() const noexcept { return *comm_; }

  [[nodiscard]] const ZeroOptions& options() const noexcept { return options_; }

  [[nodiscard]] const std::shared_ptr<memory::Tally>& tally() const noexcept { return tally_; }

  // Full units while they are in use (stage 3): one shared copy on each host.
  [[nodiscard]] SlotPool& gathered() noexcept { return gathered_; }

  // One micro-step's gradients of a unit on their way into shards (stages 2 and 3).
  [[nodiscard]] SlotPool& micro_gradients() noexcept { return micro_gradients_; }

 private:
  std::shared_ptr<comm::Communicator> comm_;
  ZeroOptions options_;
  std::shared_ptr<memory::Tally> tally_;
  SlotPool gathered_;
  SlotPool micro_gradients_;
};

}  // namespace zeroth::zero
