#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/unit.h"
#include "shard/flat_layout.h"
#include "zero/counted_buffer.h"
#include "zero/shared_state.h"

#include <ATen/core/Tensor.h>

namespace zeroth::zero {

// A unit's weights in the type they compute in: where they lie, and how the whole comes together.
//
//   prefetch() starts the gathering, acquire() waits for it, release() lets go: between the last
//   two the full weights are valid. At stage 3 they live in one storage whose memory comes and
//   goes, so tensors that autograd saved stay valid; outside the leaves are empty (shape [0], as
//   DeepSpeed's are). Small units (persistence_elements) stay gathered.
//
//   Whoever changes this rank's part calls publish(), which starts bringing it to the other ranks;
//   the next acquire() waits for that.
//
// Every rank calls the same functions in the same order.
class UnitWeights {
 public:
  // Reads elements [range.begin, range.end) of the layout into fp32; padding reads as zero.
  using Reader = std::function<void(shard::Range range, std::span<float> values)>;

  // `parameters`: those of the layout, in its order; their values become views of this storage and
  // stay the same tensors. Collective.
  UnitWeights(std::string unit_name,
              const std::vector<models::Parameter*>& parameters,
              const shard::FlatLayout& layout,
              const Reader& first_values,
              SharedState& shared);

  void prefetch();
  void acquire();
  void release();
  void publish();

  // Waits for what publish() or prefetch() has started: before this rank's part changes again.
  void settle();

  // Whether prefetch() would have to gather.
  [[nodiscard]] bool gathers() const noexcept {
    return passes_ && gathered_ == nullptr && !leaves_.empty();
  }

  [[nodiscard]] const std::vector<at::Tensor>& leaves() const noexcept { return leaves_; }

  // Where this rank keeps an element of the layout: its own shard at stage 3, else any.
  [[nodiscard]] std::byte* at(std::int64_t element) const noexcept;

 private:
  void adopt(const Reader& first_values);
  void make_leaves(const std::vector<models::Parameter*>& parameters);
  void gather_into(const comm::BufferPtr& full, const std::string& what, std::int64_t bucket);
  void point_at(void* data) const;
  [[nodiscard]] shard::Range held_range() const noexcept;

  std::string unit_name_;
  const shard::FlatLayout& layout_;
  SharedState& shared_;
  std::int64_t element_bytes_;
  bool passes_ = false;  // gathered for each use, in a slot
  CountedBuffer kept_;   // all of the layout, or this rank's shard at stage 3
  CountedBuffer whole_;  // stage 3, small units: gathered for good
  at::Tensor full_;      // the storage that the leaves share
  std::vector<at::Tensor> leaves_;
  std::vector<std::vector<std::int64_t>> sizes_;  // of the leaves, while they have memory
  comm::BufferPtr gathered_;                      // the slot that holds the full weights
  std::vector<comm::InFlight> transfers_;
  int holders_ = 0;
};

}  // namespace zeroth::zero
