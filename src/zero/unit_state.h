#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "memory/flat_buffer.h"
#include "models/unit.h"
#include "optim/optimizer.h"
#include "shard/flat_layout.h"
#include "shard/on_file.h"
#include "zero/piece_room.h"
#include "zero/shared_state.h"
#include "zero/unit_gradients.h"
#include "zero/unit_weights.h"

#include <ATen/core/Tensor.h>

namespace zeroth::zero {

// A unit's life: where its trainable parameters, gradients, master copy and moments lie, and how
// they move between ranks. All follow one flat layout with the same shard borders in every stage,
// so that the stages agree. Frozen parameters stay with the unit, whole.
//
// Every rank calls the same functions in the same order.
class UnitState {
 public:
  // Collective. First values are read range by range: no rank reads more than it keeps.
  UnitState(models::Unit& unit, const shard::OnFile& on_file, std::shared_ptr<SharedState> shared);

  [[nodiscard]] models::Unit& unit() const noexcept { return *unit_; }

  [[nodiscard]] bool trains() const noexcept { return !trainable_.empty(); }

  // The trainable parameters, in layout order.
  [[nodiscard]] const std::vector<models::Parameter*>& trainable() const noexcept {
    return trainable_;
  }

  // The same as leaves to differentiate with respect to.
  [[nodiscard]] const std::vector<at::Tensor>& leaves() const noexcept;

  [[nodiscard]] const shard::FlatLayout& layout() const noexcept { return *layout_; }

  // trains() only.
  [[nodiscard]] UnitGradients& gradients() const noexcept { return *gradients_; }

  // Of the weights and gradients; a unit that trains nothing has none, and does nothing.
  void prefetch() const;
  void acquire() const;
  void release() const;
  void settle() const;
  [[nodiscard]] bool gathers() const noexcept;
  void finish_gradients() const;
  void clear_gradients() const;

  // The sum of squares over the part of shard `rank`'s range that this rank has gradients of: its
  // own, or all at stage 0.
  [[nodiscard]] double sum_of_squares(std::int64_t rank) const;

  // Whether some of what an update needs rests on file.
  [[nodiscard]] bool passes_through_memory() const noexcept { return on_file_.any(); }

  // An update of this rank's part of the parameters, piece by piece; a piece's state is in memory
  // from start_reading() to the end of start_writing()'s. finish_update() starts publishing.
  [[nodiscard]] std::vector<shard::Range> pieces() const;
  [[nodiscard]] std::vector<InFlight> start_reading(shard::Range piece, PieceRoom& room) const;
  void update(shard::Range piece,
              PieceRoom& room,
              const optim::Optimizer& optimizer,
              const optim::UpdateStep& step);
  [[nodiscard]] std::vector<InFlight> start_writing(shard::Range piece, PieceRoom& room) const;
  void finish_update();

  // For optimizers that need norms of whole parameters: the sums of each shard range this rank
  // holds, range by range in rank order, a parameter after the other; then the update with one
  // ratio for each parameter.
  [[nodiscard]] std::vector<std::vector<optim::Optimizer::Norms>> measure(
      const optim::Optimizer& optimizer, const optim::UpdateStep& step);
  void update_with_ratios(const optim::Optimizer& optimizer,
                          const optim::UpdateStep& step,
                          std::span<const double> ratios);

  // A part of the layout, of the fp32 master or of moment `index`: a copy. Collective.
  [[nodiscard]] at::Tensor gather_master(shard::Range part) const;
  [[nodiscard]] at::Tensor gather_moment(int index, shard::Range part) const;
  // New values of a part of the layout, which every rank gives alike. Collective.
  void overwrite_master(shard::Range part, const at::Tensor& values);
  void overwrite_moment(int index, shard::Range part, const at::Tensor& values);

  // For checkpoints, by this rank alone: fp32 copies of a part of what its optimizer holds, and new
  // values of it, which finish_update() then brings to the others.
  [[nodiscard]] shard::Range own_range() const noexcept;
  [[nodiscard]] at::Tensor own_master(shard::Range part) const;
  [[nodiscard]] at::Tensor own_moment(int index, shard::Range part) const;
  void set_own_master(shard::Range part, const at::Tensor& values);
  void set_own_moment(int index, shard::Range part, const at::Tensor& values);

  // The first of this rank's parameters whose gradient holds inf or NaN, if one does.
  [[nodiscard]] std::optional<std::size_t> first_non_finite_gradient() const;

 private:
  void make_state();
  template <typename Own>
  [[nodiscard]] at::Tensor gather(const std::string& what,
                                  shard::Range part,
                                  const Own& own_part) const;
  [[nodiscard]] optim::ShardView view(shard::Range piece,
                                      std::span<const optim::Segment> segments,
                                      PieceRoom& room) const;
  template <typename Visit>
  void for_each_on_file(const Visit& visit) const;
  [[nodiscard]] std::span<float> master(shard::Range piece, PieceRoom& room) const;
  [[nodiscard]] bool rounds_in_update() const noexcept;
  [[nodiscard]] optim::RoundedWeights rounded(shard::Range piece) const;
  void round(shard::Range piece, PieceRoom& room) const;
  [[nodiscard]] std::vector<shard::Range> shard_ranges() const;
  [[nodiscard]] bool weights_are_master() const noexcept;
  [[nodiscard]] at::Tensor own_values(const Array& array, shard::Range part) const;
  [[nodiscard]] const Array& moment(int index) const;

  models::Unit* unit_;
  std::shared_ptr<SharedState> shared_;
  std::vector<models::Parameter*> trainable_;
  std::unique_ptr<shard::FlatLayout> layout_;
  std::unique_ptr<UnitWeights> weights_;
  std::unique_ptr<UnitGradients> gradients_;
  shard::OnFile on_file_;
  Array master_;  // fp32; empty where the weights are fp32 themselves
  std::array<Array, 2> moments_;
};

}  // namespace zeroth::zero
