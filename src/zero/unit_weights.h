#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/unit.h"
#include "shard/flat_layout.h"
#include "zero/array.h"
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
//   Where this rank's shard rests on file, prefetch() starts reading it, and acquire() gathers.
//
//   Whoever changes this rank's part calls publish(), which starts bringing it to the other ranks;
//   the next acquire() waits for that.
//
// Every rank calls the same functions in the same order.
class UnitWeights {
 public:
  // `parameters`: those of the layout, in its order; their values become views of this storage and
  // stay the same tensors. Collective.
  UnitWeights(std::string unit_name,
              const std::vector<models::Parameter*>& parameters,
              const shard::FlatLayout& layout,
              bool on_file,
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

  // The part of the layout that this rank keeps: its shard at stage 3, else all.
  [[nodiscard]] shard::Range held() const noexcept;
  // Where an element of held() is in memory.
  [[nodiscard]] std::byte* at(std::int64_t element) const noexcept;

  // fp32 values of a part of held(), rounded to what computes.
  void store(shard::Range part, const at::Tensor& values) const;

  // held() where that rests on file.
  [[nodiscard]] const Array& resting() const noexcept { return resting_; }

 private:
  void start_gathering();
  void start_reading();
  void finish_reading();
  void make_leaves(const std::vector<models::Parameter*>& parameters);
  void gather_into(const comm::BufferPtr& full,
                   const std::byte* own,
                   const std::string& what,
                   std::int64_t bucket);
  void point_at(void* data) const;

  std::string unit_name_;
  const shard::FlatLayout& layout_;
  SharedState& shared_;
  std::int64_t element_bytes_;
  bool passes_ = false;  // gathered for each use, in a slot
  CountedBuffer kept_;   // held(), where it rests in memory
  Array resting_;
  CountedBuffer whole_;  // stage 3, small units: gathered for good
  at::Tensor full_;      // the storage that the leaves share
  std::vector<at::Tensor> leaves_;
  std::vector<std::vector<std::int64_t>> sizes_;  // of the leaves, while they have memory
  comm::BufferPtr gathered_;                      // the slot that holds the full weights
  InFlight reading_;                              // of the shard, into the slot or into staged_
  memory::FlatBuffer staged_;
  bool reads_ = false;
  std::vector<comm::InFlight> transfers_;
  int holders_ = 0;
};

}  // namespace zeroth::zero
