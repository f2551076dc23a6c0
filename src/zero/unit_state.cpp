#include "zero/unit_state.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "zero/first_values.h"
#include "zero/numbers.h"
#include "zero/segments.h"

namespace zeroth::zero {
namespace {

using kernels::simd::Storage;
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

constexpr auto kFloatBytes = static_cast<std::int64_t>(sizeof(float));

std::span<float> floats_at(std::byte* data, Range part) {
  return {reinterpret_cast<float*>(data) + part.begin, as_size(part.size())};
}

std::vector<Range> pieces_of(std::int64_t size, std::int64_t step) {
  std::vector<Range> pieces;
  for (std::int64_t begin = 0; begin < size; begin += step) {
    pieces.push_back({begin, std::min(size, begin + step)});
  }
  return pieces;
}

}  // namespace

UnitState::UnitState(models::Unit& unit,
                     const shard::OnFile& on_file,
                     std::shared_ptr<SharedState> shared)
    : unit_(&unit),
      shared_(std::move(shared)),
      trainable_(trainable_of(unit)),
      layout_(layout_of(trainable_, shared_->comm().size())),
      on_file_(on_file) {
  if (trains()) {
    make_state();
  }
}

void UnitState::make_state() {
  const ZeroOptions& options = shared_->options();
  const auto make = [&](Purpose purpose) {
    return on_file_.optimizer ? Array(own_range().size(), kFloatBytes, shared_->optimizer_space())
                              : Array(own_range().size(), kFloatBytes, purpose, shared_->tally());
  };
  if (options.dtype != at::kFloat) {
    master_ = make(Purpose::kMaster);
    read_first_values(
        trainable_, *layout_, own_range(), [this](Range part, const at::Tensor& values) {
          master_.copy_in(part.begin - own_range().begin, bytes_of(values));
        });
  }
  for (int moment = 0; moment < options.num_moments; ++moment) {
    moments_[static_cast<std::size_t>(moment)] = make(Purpose::kMoments);
  }
  gradients_ = std::make_unique<UnitGradients>(
      unit_->name(), sizes_of(trainable_), *layout_, on_file_.gradients, *shared_);
  weights_ = std::make_unique<UnitWeights>(
      unit_->name(), trainable_, *layout_, on_file_.parameters, *shared_);
  for (models::Parameter* parameter : trainable_) {
    parameter->stored.reset();  // the file may go
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

std::vector<Range> UnitState::pieces() const {
  if (!trains()) {
    return {};
  }
  const std::int64_t size = own_range().size();
  const std::int64_t asked = shared_->options().sub_group_elements;
  return pieces_of(size, shard::piece_elements(size, asked, passes_through_memory()));
}

// What rests on file of the state that an update reads or writes.
template <typename Visit>
void UnitState::for_each_on_file(const Visit& visit) const {
  visit(weights_are_master() ? weights_->resting() : master_, StatePart::kMaster);
  visit(moments_[0], StatePart::kFirstMoment);
  visit(moments_[1], StatePart::kSecondMoment);
}

std::vector<InFlight> UnitState::start_reading(Range piece, PieceRoom& room) const {
  std::vector<InFlight> reads;
  const auto read = [&](const Array& array, StatePart part) {
    if (array.on_file()) {
      reads.push_back(array.start_reading(piece.begin, piece.size(), room.of(part).data()));
    }
  };
  for_each_on_file(read);
  read(gradients_->resting(), StatePart::kGradients);
  return reads;
}

void UnitState::update(Range piece,
                       PieceRoom& room,
                       const Optimizer& optimizer,
                       const optim::UpdateStep& step) {
  if (piece.begin == 0) {
    weights_->settle();
  }
  const Range own = own_range();
  const auto segments =
      merged(segments_of(trainable_, *layout_, {own.begin + piece.begin, own.begin + piece.end}));
  optimizer.update(view(piece, segments, room), step);
  round(piece, room);
}

std::vector<InFlight> UnitState::start_writing(Range piece, PieceRoom& room) const {
  std::vector<InFlight> writes;
  const auto write = [&](const Array& array, StatePart part) {
    if (array.on_file()) {
      writes.push_back(array.start_writing(piece.begin, piece.size(), room.of(part).data()));
    }
  };
  for_each_on_file(write);
  if (!weights_are_master()) {
    write(weights_->resting(), StatePart::kWeights);
  }
  return writes;
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
  PieceRoom room(layout_->shard_numel(), shared_->tally());
  for (const Range piece : shard_ranges()) {
    const auto segments =
        segments_of(trainable_, *layout_, {own.begin + piece.begin, own.begin + piece.end});
    std::vector<Optimizer::Norms> norms(segments.size());
    optimizer.measure(view(piece, segments, room), step, norms);
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
  PieceRoom room(layout_->shard_numel(), shared_->tally());
  for (const Range piece : shard_ranges()) {
    const auto segments =
        segments_of(trainable_, *layout_, {own.begin + piece.begin, own.begin + piece.end});
    std::vector<double> of_segments;
    for (const optim::Segment& segment : segments) {
      of_segments.push_back(ratios[as_size(segment.parameter)]);
    }
    optim::ShardView part = view(piece, segments, room);
    part.ratios = of_segments;
    optimizer.update(part, step);
    round(piece, room);
  }
  finish_update();
}

optim::ShardView UnitState::view(Range piece,
                                 std::span<const optim::Segment> segments,
                                 PieceRoom& room) const {
  const auto moment = [&](std::size_t index, StatePart part) {
    const Array& array = moments_[index];
    return array.on_file() ? room.of(part).as<float>().first(as_size(piece.size()))
                           : floats_at(array.data(), piece);
  };
  memory::FlatBuffer none;
  optim::ShardView view{
      .master = master(piece, room),
      .gradients = gradients_->read(
          piece,
          gradients_->resting().empty() ? nullptr : room.of(StatePart::kGradients).data(),
          gradients_->read_copies() ? room.of(StatePart::kWideGradients) : none),
      .moments = {},
      .segments = segments,
      .rounded = rounded(piece)};
  const int num_moments = shared_->options().num_moments;
  if (num_moments > 0) {
    view.moments[0] = moment(0, StatePart::kFirstMoment);
  }
  if (num_moments > 1) {
    view.moments[1] = moment(1, StatePart::kSecondMoment);
  }
  return view;
}

std::span<float> UnitState::master(Range piece, PieceRoom& room) const {
  const Array& array = weights_are_master() ? weights_->resting() : master_;
  if (array.on_file()) {
    return room.of(StatePart::kMaster).as<float>().first(as_size(piece.size()));
  }
  return floats_at(weights_are_master() ? weights_->at(own_range().begin) : array.data(), piece);
}

// 16-bit weights in memory are rounded by the optimizer, in its pass over the master, through raw
// storage: autograd must not count this as a change of the leaves. Padding stays zero.
bool UnitState::rounds_in_update() const noexcept {
  const at::ScalarType dtype = shared_->options().dtype;
  return (dtype == at::kBFloat16 || dtype == at::kHalf) && !weights_are_master() &&
         weights_->resting().empty();
}

optim::RoundedWeights UnitState::rounded(Range piece) const {
  if (!rounds_in_update()) {
    return {};
  }
  auto* const bits =
      reinterpret_cast<std::uint16_t*>(weights_->at(own_range().begin + piece.begin));
  return {.type = shared_->options().dtype == at::kHalf ? Storage::kFp16 : Storage::kBf16,
          .bits = {bits, as_size(piece.size())}};
}

// The master into weights that rest on file, or compute in fp64.
void UnitState::round(Range piece, PieceRoom& room) const {
  if (weights_are_master() || rounds_in_update()) {
    return;
  }
  std::byte* const weights = weights_->resting().empty()
                                 ? weights_->at(own_range().begin + piece.begin)
                                 : room.of(StatePart::kWeights).data();
  flat_view(weights, piece.size(), shared_->options().dtype)
      .copy_(flat_view(master(piece, room).data(), piece.size(), at::kFloat));
}

void UnitState::finish_update() {
  if (trains()) {
    weights_->publish();
  }
}

bool UnitState::weights_are_master() const noexcept {
  return master_.empty();
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

}  // namespace zeroth::zero
