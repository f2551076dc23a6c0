// A unit's master weights and moments as values: read from the ranks that hold them, and written.
#include <algorithm>

#include "base/check.h"
#include "zero/numbers.h"
#include "zero/unit_state.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

namespace zeroth::zero {

using shard::Range;

// A copy of a part of own_range().
at::Tensor UnitState::own_values(const Array& array, Range part) const {
  at::Tensor values = at::empty({part.size()}, at::kFloat);
  array.copy_out(part.begin - own_range().begin,
                 {static_cast<std::byte*>(values.data_ptr()), values.nbytes()});
  return values;
}

at::Tensor UnitState::own_master(Range part) const {
  if (!weights_are_master()) {
    return own_values(master_, part);
  }
  return weights_->resting().empty()
             ? flat_view(weights_->at(part.begin), part.size(), at::kFloat).clone()
             : own_values(weights_->resting(), part);
}

at::Tensor UnitState::gather_master(Range part) const {
  return gather("master weights", part, [this](Range own) { return own_master(own); });
}

at::Tensor UnitState::own_moment(int index, Range part) const {
  return own_values(moment(index), part);
}

const Array& UnitState::moment(int index) const {
  ZEROTH_CHECK(index >= 0 && index < shared_->options().num_moments, "moment {}", index);
  return moments_[static_cast<std::size_t>(index)];
}

at::Tensor UnitState::gather_moment(int index, Range part) const {
  return gather("moments", part, [&](Range own) { return own_moment(index, own); });
}

// From the ranks that hold it, each of which gives as much as the one that has most.
template <typename Own>
at::Tensor UnitState::gather(const std::string& what, Range part, const Own& own_part) const {
  if (own_range().size() == layout_->padded_numel()) {
    return own_part(part);
  }
  comm::Communicator& comm = shared_->comm();
  std::int64_t most = 0;
  for (std::int64_t rank = 0; rank < comm.size(); ++rank) {
    most = std::max(most, shard::intersect(layout_->shard(rank), part).size());
  }
  const at::Tensor mine = at::zeros({most}, at::kFloat);
  if (const Range here = shard::intersect(own_range(), part); here.size() > 0) {
    mine.narrow(0, 0, here.size()).copy_(own_part(here));
  }
  const comm::BufferPtr all =
      comm::make_private_buffer(mine.nbytes() * static_cast<std::size_t>(comm.size()));
  const std::span<const float> sent(mine.data_ptr<float>(), static_cast<std::size_t>(most));
  comm.all_gather(what + " of " + unit_->name(), std::as_bytes(sent), all).wait();
  at::Tensor values = at::empty({part.size()}, at::kFloat);
  for (std::int64_t rank = 0; rank < comm.size(); ++rank) {
    const Range there = shard::intersect(layout_->shard(rank), part);
    if (there.size() > 0) {
      values.narrow(0, there.begin - part.begin, there.size())
          .copy_(flat_view(all->as<float>().data() + rank * most, there.size(), at::kFloat));
    }
  }
  return values;
}

void UnitState::overwrite_master(Range part, const at::Tensor& values) {
  weights_->settle();
  const Range here = shard::intersect(part, own_range());
  if (here.size() > 0) {
    set_own_master(here, values.narrow(0, here.begin - part.begin, here.size()));
  }
  finish_update();
}

void UnitState::overwrite_moment(int index, Range part, const at::Tensor& values) {
  const Range here = shard::intersect(part, own_range());
  if (here.size() > 0) {
    set_own_moment(index, here, values.narrow(0, here.begin - part.begin, here.size()));
  }
}

void UnitState::set_own_master(Range part, const at::Tensor& values) {
  weights_->settle();
  if (!weights_are_master()) {
    master_.copy_in(part.begin - own_range().begin, bytes_of(values));
  }
  weights_->store(part, values);
}

void UnitState::set_own_moment(int index, Range part, const at::Tensor& values) {
  moment(index).copy_in(part.begin - own_range().begin, bytes_of(values));
}

}  // namespace zeroth::zero
