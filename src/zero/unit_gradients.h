#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "memory/flat_buffer.h"
#include "shard/flat_layout.h"
#include "zero/counted_buffer.h"
#include "zero/shared_state.h"
#include "zero/sums_on_file.h"

#include <ATen/core/Tensor.h>

namespace zeroth::zero {

// A unit's gradients, from backward to the optimizer.
//
//   add() takes gradients of a micro-step; submit() starts their reduction where this micro-step
//   has one: each has with reduce_every_micro_step, else a window's last. wait() waits for it.
//   finish() ends a window: after it this rank's part of the sums over all ranks is here.
//
// Sums over ranks are fp32 and in rank order; sums over micro-steps are kept in grad_accum. Where
// they rest on file, each micro-step reads them, adds its own and writes them back.
class UnitGradients {
 public:
  // `sizes`: of the layout's parameters. Collective.
  UnitGradients(std::string unit_name,
                std::vector<std::vector<std::int64_t>> sizes,
                const shard::FlatLayout& layout,
                bool on_file,
                SharedState& shared);

  // An undefined gradient adds nothing.
  void add(std::size_t parameter, const at::Tensor& gradient);

  // Whether parameter has been given a gradient since the last submit().
  [[nodiscard]] bool got(std::size_t parameter) const { return got_[parameter]; }

  void submit(bool last_of_window);
  void wait();
  void finish();
  void clear();

  // The part of the layout whose sums this rank has after finish(): its shard, or all at stage 0.
  [[nodiscard]] shard::Range range() const noexcept;

  // range(), where that rests on file.
  [[nodiscard]] const Array& resting() const noexcept { return file_.resting(); }

  // Elements of range(), counted from its begin, in fp32: the sums themselves, or a copy that
  // `scratch` keeps. `stored`: these elements as they were read from file, if they rest there.
  [[nodiscard]] std::span<const float> read(shard::Range part,
                                            const std::byte* stored,
                                            memory::FlatBuffer& scratch) const;
  [[nodiscard]] bool read_copies() const noexcept;
  // The sum of squares over a part of range(), in an order that depends on its length alone.
  [[nodiscard]] double sum_of_squares(shard::Range part) const;

  // The sums over ranks of the window so far: a copy of the whole. Collective.
  [[nodiscard]] at::Tensor gather();
  // The window's sums over ranks become these. Collective.
  void overwrite(shard::Range part, const at::Tensor& values);

 private:
  void take_slot();
  void start_reductions();
  void reduce_bucket(shard::Range bucket);
  void store_sums();
  void spread_sums();
  [[nodiscard]] comm::InFlight gather_sums();
  [[nodiscard]] std::span<float> sums_target() noexcept;
  [[nodiscard]] bool adds_directly() const noexcept;
  void add_scratch();
  void point_views_at(void* data, comm::NumberType type);
  void write_slot();
  [[nodiscard]] bool adds_in_slot() const noexcept;
  [[nodiscard]] at::Tensor stored(shard::Range part) const;
  [[nodiscard]] std::byte* stored_at(std::int64_t element) const noexcept;
  [[nodiscard]] at::ScalarType sum_type() const noexcept;
  [[nodiscard]] std::byte* own_sums() const noexcept;
  [[nodiscard]] bool keeps_shard() const noexcept;
  [[nodiscard]] shard::Range own() const noexcept;

  std::string unit_name_;
  std::vector<std::vector<std::int64_t>> sizes_;
  const shard::FlatLayout& layout_;
  SharedState& shared_;
  CountedBuffer local_;           // grad_accum, all of the layout: sums of this rank's micro-steps
  memory::FlatBuffer shard_;      // grad_accum: sums over ranks, with reduce_every_micro_step
  memory::FlatBuffer scratch_;    // fp32: sums on their way into a narrower store, or to a file
  SumsOnFile file_;               // in place of shard_, or of local_ where a rank is alone
  comm::BufferPtr slot_;          // in which gradients travel
  bool slot_is_written_ = false;  // to file_: nobody adds to it any more
  std::vector<at::Tensor> views_;
  std::vector<bool> got_;
  std::vector<comm::InFlight> reductions_;
  bool last_of_window_ = false;  // what submit() was told
  comm::InFlight gathering_;     // stage 0: the other ranks' sums
  bool reduced_ = false;         // local_ holds sums over ranks in own(), or in all at stage 0
};

}  // namespace zeroth::zero
