#include "zero/unit_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "zero/gather.h"
#include "zero/numbers.h"
#include "zero/segments.h"

#include <ATen/ops/empty.h>

namespace zeroth::zero {
namespace {

using memory::FlatBuffer;
using memory::Purpose;
using optim::Optimizer;
using shard::Range;

std::size_t as_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

std::vector<models::Parameter*> trainable_of(models::Unit& unit) {
  std::vector<models::Parameter*> trainable;
  for (models::Parameter& parameter : unit.parameters()) {
    if (parameter.trainable) {
      trainable.push_back(&parameter);
    }
  }
  return trainable;
}

std::vector<std::vector<std::int64_t>> sizes_of(const std::vector<models::Parameter*>& parameters) {
  std::vector<std::vector<std::int64_t>> sizes;
  for (const models::Parameter* parameter : parameters) {
    sizes.push_back(parameter->sizes());
  }
  return sizes;
}

std::unique_ptr<shard::FlatLayout> layout_of(const std::vector<models::Parameter*>& parameters,
                                             std::int64_t num_shards) {
  std::vector<std::int64_t> numels;
  for (const models::Parameter* parameter : parameters) {
    numels.push_back(parameter->numel());
  }
  return std::make_unique<shard::FlatLayout>(numels, num_shards);
}

std::span<float> part_of(std::span<float> values, Range part) {
  return values.subspan(as_size(part.begin), as_size(part.size()));
}

std::vector<Range> pieces_of(std::int64_t size, std::int64_t step) {
  std::vector<Range> pieces;
  for (std::int64_t begin = 0; begin < size; begin += step) {
    pieces.push_back({begin, std::min(size, begin + step)});
  }
  return pieces;
}

}  // namespace

UnitState::UnitState(models::Unit& unit, std::shared_ptr<SharedState> shared)
    : unit_(&unit),
      shared_(std::move(shared)),
      trainable_(trainable_of(unit)),
      layout_(layout_of(trainable_, shared_->comm().size())) {
  if (trains()) {
    make_state();
  }
}

void UnitState::make_state() {
  const ZeroOptions& options = shared_->options();
  const auto& tally = shared_->tally();
  const auto own_bytes = own_range().size() * static_cast<std::int64_t>(sizeof(float));
  if (options.dtype != at::kFloat) {
    master_ = FlatBuffer(own_bytes, Purpose::kMaster, tally);
    read_first_values(own_range(), master_.as<float>());
  }
  for (int moment = 0; moment < options.num_moments; ++moment) {
    moments_[static_cast<std::size_t>(moment)] = FlatBuffer(own_bytes, Purpose::kMoments, tally);
  }
  gradients_ =
      std::make_unique<UnitGradients>(unit_->name(), sizes_of(trainable_), *layout_, *shared_);
  weights_ = std::make_unique<UnitWeights>(
      unit_->name(),
      trainable_,
      *layout_,
      [this](Range range, std::span<float> values) { read_first_values(range, values); },
      *shared_);
  for (models::Parameter* parameter : trainable_) {
    parameter->read = nullptr;  // the file may go
  }
}

void UnitState::read_first_values(Range range, std::span<float> values) const {
  std::fill(values.begin(), values.end(), 0.0F);
  for (std::size_t index = 0; index < trainable_.size(); ++index) {
    const Range place = layout_->parameter(index);
    const Range part = shard::intersect(place, range);
    if (part.size() > 0) {
      trainable_[index]->read_values(
          part.begin - place.begin,
          values.subspan(as_size(part.begin - range.begin), as_size(part.size())));
    }
  }
}

const std::vector<at::Tensor>& UnitState::leaves() const noexcept {
  static const std::vector<at::Tensor> none;
  return weights_ == nullptr ? none : weights_->leaves();
}

void UnitState::prefetch() const {
  if (trains()) {
    weights_->prefetch();
  }
}

void UnitState::acquire() const {
  if (trains()) {
    weights_->acquire();
  }
}

void UnitState::release() const {
  if (trains()) {
    weights_->release();
  }
}

void UnitState::settle() const {
  if (trains()) {
    weights_->settle();
  }
}

bool UnitState::gathers() const noexcept {
  return trains() && weights_->gathers();
}

void UnitState::finish_gradients() const {
  if (trains()) {
    gradients_->finish();
  }
}

void UnitState::clear_gradients() const {
  if (trains()) {
    gradients_->clear();
  }
}

double UnitState::sum_of_squares(std::int64_t rank) const {
  if (!trains()) {
    return 0;
  }
  const Range own = own_range();
  const Range part = shard::intersect(layout_->shard(rank), own);
  return gradients_->sum_of_squares({part.begin - own.begin, part.end - own.begin});
}

void UnitState::update(const Optimizer& optimizer, const optim::UpdateStep& step) {
  if (!trains()) {
    return;
  }
  weights_->settle();
  const Range own = own_range();
  const std::int64_t asked = shared_->options().sub_group_elements;  // 0: no pieces
  const std::int64_t largest = asked <= 0 ? own.size() : std::min(asked, own.size());
  FlatBuffer scratch = scratch_for(largest);
  for (const Range piece : pieces_of(own.size(), largest)) {
    const auto segments =
        merged(segments_of(trainable_, *layout_, {own.begin + piece.begin, own.begin + piece.end}));
    optimizer.update(view(piece, segments, scratch), step);
  }
  finish_update();
}

// A shard range at a time, whatever sub_group_elements says: sums then have one order everywhere.
std::vector<Range> UnitState::shard_ranges() const {
  const Range own = own_range();
  return pieces_of(own.size(), layout_->shard_numel());
}

std::vector<std::vector<Optimizer::Norms>> UnitState::measure(const Optimizer& optimizer,
                                                              const optim::UpdateStep& step) {
  std::vector<std::vector<Optimizer::Norms>> ranges;
  if (!trains()) {
    return ranges;
  }
  const Range own = own_range();
  FlatBuffer scratch = scratch_for(layout_->shard_numel());
  for (const Range piece : shard_ranges()) {
    const auto segments =
        segments_of(trainable_, *layout_, {own.begin + piece.begin, own.begin + piece.end});
    std::vector<Optimizer::Norms> norms(segments.size());
    optimizer.measure(view(piece, segments, scratch), step, norms);
    auto& of_parameters = ranges.emplace_back(trainable_.size());
    for (std::size_t i = 0; i < segments.size(); ++i) {
      of_parameters[as_size(segments[i].parameter)] = norms[i];
    }
  }
  return ranges;
}

void UnitState::update_with_ratios(const Optimizer& optimizer,
                                   const optim::UpdateStep& step,
                                   std::span<const double> ratios) {
  if (!trains()) {
    return;
  }
  weights_->settle();
  const Range own = own_range();
  FlatBuffer scratch = scratch_for(layout_->shard_numel());
  for (const Range piece : shard_ranges()) {
    const auto segments =
        segments_of(trainable_, *layout_, {own.begin + piece.begin, own.begin + piece.end});
    std::vector<double> of_segments;
    for (const optim::Segment& segment : segments) {
      of_segments.push_back(ratios[as_size(segment.parameter)]);
    }
    optim::ShardView part = view(piece, segments, scratch);
    part.ratios = of_segments;
    optimizer.update(part, step);
  }
  finish_update();
}

optim::ShardView UnitState::view(Range piece,
                                 std::span<const optim::Segment> segments,
                                 FlatBuffer& scratch) const {
  optim::ShardView view{.master = part_of(master(), piece),
                        .gradients = gradients_->read(piece, scratch),
                        .moments = {},
                        .segments = segments};
  for (int moment = 0; moment < shared_->options().num_moments; ++moment) {
    const auto index = static_cast<std::size_t>(moment);
    view.moments[index] = part_of(moments_[index].as<float>(), piece);
  }
  return view;
}

FlatBuffer UnitState::scratch_for(std::int64_t elements) const {
  return gradients_->read_copies() ? FlatBuffer(elements * static_cast<std::int64_t>(sizeof(float)),
                                                Purpose::kBuffers,
                                                shared_->tally())
                                   : FlatBuffer();
}

// Rounds the master into the weights that compute, through raw storage: autograd must not count
// this as a change of the leaves.
void UnitState::finish_update() {
  if (master_.bytes() > 0) {
    const Range own = own_range();
    flat_view(weights_->at(own.begin), own.size(), shared_->options().dtype)
        .copy_(flat_view(master_.data(), own.size(), at::kFloat));
  }
  weights_->publish();
}

at::Tensor UnitState::gather_master() const {
  return gather("master weights", master());
}

at::Tensor UnitState::gather_moment(int index) const {
  ZEROTH_CHECK(index >= 0 && index < shared_->options().num_moments, "moment {}", index);
  return gather("moments", moments_[static_cast<std::size_t>(index)].as<const float>());
}

at::Tensor UnitState::gather(const std::string& what, std::span<const float> own) const {
  if (static_cast<std::int64_t>(own.size()) < layout_->padded_numel()) {
    return gather_floats(shared_->comm(), what + " of " + unit_->name(), own);
  }
  at::Tensor full = at::empty({layout_->padded_numel()}, at::kFloat);
  std::memcpy(full.data_ptr(), own.data(), full.nbytes());
  return full;
}

void UnitState::overwrite_master(Range part, const at::Tensor& values) {
  weights_->settle();
  const Range own = own_range();
  const Range here = shard::intersect(part, own);
  if (here.size() > 0) {
    flat_view(master().data() + (here.begin - own.begin), here.size(), at::kFloat)
        .copy_(values.narrow(0, here.begin - part.begin, here.size()));
  }
  finish_update();
}

void UnitState::overwrite_moment(int index, Range part, const at::Tensor& values) {
  ZEROTH_CHECK(index >= 0 && index < shared_->options().num_moments, "moment {}", index);
  const Range own = own_range();
  const Range here = shard::intersect(part, own);
  if (here.size() > 0) {
    float* const moment = moments_[static_cast<std::size_t>(index)].as<float>().data();
    flat_view(moment + (here.begin - own.begin), here.size(), at::kFloat)
        .copy_(values.narrow(0, here.begin - part.begin, here.size()));
  }
}

std::optional<std::size_t> UnitState::first_non_finite_gradient() const {
  if (!trains()) {
    return std::nullopt;
  }
  for (const optim::Segment& segment : segments_of(trainable_, *layout_, own_range())) {
    if (!std::isfinite(gradients_->sum_of_squares(segment.range))) {
      return as_size(segment.parameter);
    }
  }
  return std::nullopt;
}

Range UnitState::own_range() const noexcept {
  return shared_->options().policy.shard_optimizer
             ? layout_->shard(shared_->comm().rank())
             : Range{.begin = 0, .end = layout_->padded_numel()};
}

std::span<float> UnitState::master() const {
  if (master_.bytes() > 0) {
    return master_.as<float>();
  }
  const Range own = own_range();
  return {reinterpret_cast<float*>(weights_->at(own.begin)), as_size(own.size())};
}

}  // namespace zeroth::zero
