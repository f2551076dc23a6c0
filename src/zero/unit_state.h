#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "comm/communicator.h"
#include "memory/flat_buffer.h"
#include "models/unit.h"
#include "optim/optimizer.h"
#include "shard/flat_layout.h"
#include "zero/shared_state.h"

#include <ATen/core/Tensor.h>

namespace zeroth::zero {

// A unit's life: where its trainable parameters, gradients, master copy and moments lie, and how
// they move between ranks. All follow one flat layout with the same shard borders in every stage,
// so that the stages agree.
//
//   prefetch() starts the gathering, acquire() waits for it, release() lets go: between the last
//   two the unit's full parameters are valid. At stage 3 they live in one storage whose memory
//   comes and goes, so tensors that autograd saved stay valid; a use outside is a null pointer, not
//   a wrong number.
//
//   accumulate() takes gradients of a micro-step, submit_gradients() starts their reduction (stages
//   2 and 3), wait_gradients() waits for it; finish_gradients() ends a window: after it the reduced
//   gradients are here.
//
// Every rank calls the same functions in the same order. Frozen parameters stay with the unit,
// whole.
class UnitState {
 public:
  UnitState(models::Unit& unit, std::shared_ptr<SharedState> shared);

  void prefetch();
  void acquire();
  void release();

  [[nodiscard]] bool acquired() const noexcept { return holders_ > 0; }

  [[nodiscard]] models::Unit& unit() const noexcept { return *unit_; }

  // The trainable parameters, in layout order: leaves to differentiate with respect to.
  [[nodiscard]] const std::vector<at::Tensor>& leaves() const noexcept { return leaves_; }

  // Adds a gradient of leaf `index`. An undefined gradient adds nothing.
  void accumulate(std::size_t index, const at::Tensor& gradient);
  void submit_gradients();
  void wait_gradients();
  void finish_gradients();
  void clear_gradients();

  // Of the part of shard `rank`'s range that this rank holds reduced gradients of: its own, or all
  // at stage 0.
  [[nodiscard]] double sum_of_squares(std::int64_t rank) const;

  // What this rank's optimizer moves.
  [[nodiscard]] optim::ShardView shard() const;

  // Rounds the master into the weights that compute, and brings every rank's part to all (stages 1
  // and 2). Collective.
  void publish();

  // All leaves' fp32 values end to end, in layout order: a copy. Collective.
  [[nodiscard]] at::Tensor gather_master() const;
  // The same of the gradients of the window so far, summed over ranks. Collective; before
  // finish_gradients().
  [[nodiscard]] at::Tensor gather_gradients() const;

  [[nodiscard]] const shard::FlatLayout& layout() const noexcept { return layout_; }

 private:
  void allocate();
  void adopt_parameters();
  void make_leaves();
  void build_segments();
  void start_reduction(const comm::BufferPtr& input, std::span<float> output, bool accumulate);
  [[nodiscard]] at::Tensor gather(const std::string& what, std::span<const float> own) const;
  [[nodiscard]] shard::Range own_range()
      const noexcept;  // what this rank's optimizer holds, in the layout
  [[nodiscard]] std::span<float> master() const;
  [[nodiscard]] std::span<const float> reduced_gradients() const;
  [[nodiscard]] std::byte* weights_at(std::int64_t element) const;
  [[nodiscard]] std::vector<at::Tensor> views(void* data, at::ScalarType dtype) const;

  models::Unit* unit_;
  std::shared_ptr<SharedState> shared_;
  std::vector<models::Parameter*> trainable_;
  shard::FlatLayout layout_;
  std::int64_t element_bytes_;

  CountedBuffer weights_;    // compute type: all of the layout, or this rank's shard at stage 3
  CountedBuffer gradients_;  // fp32, all of the layout; stages 0 and 1
  memory::FlatBuffer gradient_shard_;  // fp32; stages 2 and 3
  memory::FlatBuffer master_;          // fp32; empty where the weights are fp32 themselves
  std::array<memory::FlatBuffer, 2> moments_;
  std::vector<optim::Segment> segments_;

  at::Tensor full_;  // the storage that the leaves share
  std::vector<at::Tensor> leaves_;
  comm::BufferPtr gathered_;  // the slot that holds the full weights (stage 3)
  comm::BufferPtr
      micro_gradients_;  // the slot that holds this micro-step's gradients (stages 2 and 3)
  std::vector<at::Tensor> gradient_views_;
  comm::InFlight gathering_;
  std::vector<comm::InFlight> reductions_;
  int holders_ = 0;
};

}  // namespace zeroth::zero
