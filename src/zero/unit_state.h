#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "memory/flat_buffer.h"
#include "models/unit.h"
#include "optim/optimizer.h"
#include "shard/flat_layout.h"

#include <ATen/core/Tensor.h>

namespace zeroth::zero {

struct UnitStateOptions {
  at::ScalarType dtype = at::kFloat;  // in which the unit computes
  int num_moments = 2;                // per trainable element, as the optimizer says
};

// A unit's life: where its trainable parameters, gradients, master copy and moments lie. All of
// them follow one flat layout, so that a shard of one is the same shard of all. The unit's
// parameters point into this storage; the object must outlive every forward of the unit.
//
// acquire() before the unit computes, release() after: between them its full parameters are valid.
// A use outside is a bug that acquired() catches.
class UnitState {
 public:
  UnitState(models::Unit& unit,
            const UnitStateOptions& options,
            const std::shared_ptr<memory::Tally>& tally);

  void acquire();
  void release();

  [[nodiscard]] bool acquired() const noexcept { return holders_ > 0; }

  [[nodiscard]] models::Unit& unit() const noexcept { return *unit_; }

  // The trainable parameters, in layout order: leaves to differentiate with respect to.
  [[nodiscard]] const std::vector<at::Tensor>& leaves() const noexcept { return leaves_; }

  // Adds a gradient to the fp32 accumulator of leaf `index`. An undefined gradient adds nothing.
  void accumulate(std::size_t index, const at::Tensor& gradient);
  void clear_gradients();

  [[nodiscard]] std::span<const float> gradients() const { return gradients_.as<float>(); }

  // The fp32 values that the optimizer moves; in fp32 they are the weights themselves.
  [[nodiscard]] std::span<float> master() const;
  [[nodiscard]] optim::ShardView shard() const;

  // Rounds the master into the weights that the unit computes with.
  void publish();

  // A leaf's value in fp32, shaped like the parameter: a copy.
  [[nodiscard]] at::Tensor master_value(std::size_t index) const;
  [[nodiscard]] at::Tensor gradient_value(std::size_t index) const;

  [[nodiscard]] const shard::FlatLayout& layout() const noexcept { return layout_; }

 private:
  void adopt_parameters(at::ScalarType dtype);
  void build_segments();
  [[nodiscard]] at::Tensor view_of(const memory::FlatBuffer& buffer,
                                   std::size_t index,
                                   at::ScalarType dtype) const;

  models::Unit* unit_;
  std::vector<models::Parameter*> trainable_;
  shard::FlatLayout layout_;
  memory::FlatBuffer weights_;    // compute type
  memory::FlatBuffer gradients_;  // fp32
  memory::FlatBuffer master_;     // fp32; empty where the weights are fp32 themselves
  std::array<memory::FlatBuffer, 2> moments_;
  std::vector<optim::Segment> segments_;
  std::vector<at::Tensor> leaves_;
  std::vector<at::Tensor> gradient_views_;
  int holders_ = 0;
};

}  // namespace zeroth::zero
