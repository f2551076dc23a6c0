#include "zero/unit_gradients.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "zero/gather.h"
#include "zero/numbers.h"

#include <ATen/ops/empty.h>

namespace zeroth::zero {
namespace {

using comm::NumberType;
using memory::FlatBuffer;
using memory::Purpose;
using shard::Range;

std::size_t as_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

UnitGradients::UnitGradients(std::string unit_name,
                             std::vector<std::vector<std::int64_t>> sizes,
                             const shard::FlatLayout& layout,
                             bool on_file,
                             SharedState& shared)
    : unit_name_(std::move(unit_name)),
      sizes_(std::move(sizes)),
      layout_(layout),
      shared_(shared),
      got_(sizes_.size(), false) {
  const StagePolicy& policy = shared_.options().policy;
  const std::int64_t width = width_of(shared_.options().grad_accum);
  if (on_file) {
    file_ = SumsOnFile(own().size(), shared_.options().grad_accum, shared_.optimizer_space());
    return;
  }
  if (keeps_shard()) {
    shard_ = FlatBuffer(layout_.shard_numel() * width, Purpose::kGradients, shared_.tally());
  }
  if (!keeps_shard() || (!policy.shard_optimizer && shared_.comm().size() > 1)) {
    const std::int64_t bytes = layout_.padded_numel() * width;
    local_ =
        CountedBuffer(shared_.comm().allocate(bytes), bytes, Purpose::kGradients, shared_.tally());
  }
  if (!keeps_shard()) {
    point_views_at(local_.data(), shared_.options().grad_accum);
  }
}

void UnitGradients::add(std::size_t parameter, const at::Tensor& gradient) {
  if (slot_is_written_) {
    wait();  // the last micro-step's sums, where a lender collects early in this one
  }
  if ((keeps_shard() || adds_in_slot()) && slot_ == nullptr) {
    take_slot();
  }
  if (gradient.defined()) {
    views_.at(parameter).add_(gradient);
    got_[parameter] = true;
  }
}

void UnitGradients::take_slot() {
  const NumberType type =
      adds_in_slot() ? shared_.options().grad_accum : shared_.options().communication;
  slot_ = shared_.travelling().take();
  if (adds_in_slot() && file_.has_sums()) {
    file_.load(slot_->data());
    point_views_at(slot_->data(), type);
    return;
  }
  if (keeps_shard() || adds_in_slot()) {
    std::memset(slot_->data(), 0, as_size(layout_.padded_numel() * width_of(type)));
    point_views_at(slot_->data(), type);
    return;
  }
  flat_view(slot_->data(), layout_.padded_numel(), scalar_type(type))
      .copy_(stored({0, layout_.padded_numel()}));
}

void UnitGradients::submit(bool last_of_window) {
  got_.assign(got_.size(), false);
  last_of_window_ = last_of_window;
  const bool alone = shared_.comm().size() == 1;
  if (adds_in_slot()) {
    write_slot();
    return;
  }
  if (!keeps_shard() && (!last_of_window || alone)) {
    return;
  }
  if (slot_ == nullptr && shared_.gradients_travel_apart()) {
    take_slot();  // a rank without a gradient takes part with zeros
  }
  start_reductions();
  if (!shared_.options().overlap) {
    wait();
  }
}

void UnitGradients::start_reductions() {
  if (!file_.empty()) {
    scratch_ = shared_.gradient_staging().take();
  } else if (!adds_directly()) {
    scratch_ = FlatBuffer(layout_.shard_numel() * static_cast<std::int64_t>(sizeof(float)),
                          Purpose::kBuffers,
                          shared_.tally());
  }
  const std::int64_t step = std::max<std::int64_t>(1, shared_.options().reduce_bucket_elements);
  for (std::int64_t begin = 0; begin < layout_.padded_numel(); begin += step) {
    reduce_bucket({begin, std::min(layout_.padded_numel(), begin + step)});
  }
}

void UnitGradients::reduce_bucket(Range bucket) {
  comm::Communicator& comm = shared_.comm();
  std::vector<comm::Span> ranges;
  for (std::int64_t rank = 0; rank < comm.size(); ++rank) {
    const Range part = shard::intersect(bucket, layout_.shard(rank));
    ranges.push_back({part.begin, part.end});
  }
  const Range part = shard::intersect(bucket, own());
  const std::int64_t offset = part.size() > 0 ? part.begin - own().begin : 0;
  const bool apart = slot_ != nullptr;
  reductions_.push_back(
      comm.reduce_scatter("gradients of " + unit_name_,
                          apart ? slot_ : local_.get(),
                          std::move(ranges),
                          sums_target().subspan(as_size(offset), as_size(part.size())),
                          /*accumulate=*/keeps_shard() && adds_directly(),
                          shared_.options().communication));
}

// Sums over ranks come as fp32: straight into the store where that is fp32 and nothing else is to
// be done with them. In place too: only this rank reads its own part of its own buffer.
bool UnitGradients::adds_directly() const noexcept {
  const bool spreads_slot = keeps_shard() && !shared_.options().scatter;
  return shared_.options().grad_accum == NumberType::kFloat32 && !spreads_slot && file_.empty();
}

std::span<float> UnitGradients::sums_target() noexcept {
  if (!adds_directly()) {
    return scratch_.as<float>().first(as_size(own().size()));
  }
  if (keeps_shard()) {
    return shard_.as<float>();
  }
  auto* const sums = reinterpret_cast<float*>(local_.data());
  return {sums + own().begin, as_size(own().size())};
}

void UnitGradients::wait() {
  if (slot_is_written_) {
    file_.finish();
    slot_is_written_ = false;
    shared_.travelling().give(std::move(slot_));
    slot_ = nullptr;
  }
  if (reductions_.empty()) {
    return;
  }
  for (comm::InFlight& reduction : reductions_) {
    reduction.wait();
  }
  reductions_.clear();
  reduced_ = !keeps_shard();
  store_sums();
  if (slot_ != nullptr) {
    if (keeps_shard()) {
      views_.clear();
    }
    shared_.travelling().give(std::move(slot_));
    slot_ = nullptr;
  }
  const bool all_need_all = !shared_.options().policy.shard_optimizer;  // stage 0
  if (last_of_window_ && all_need_all && shared_.comm().size() > 1) {
    gathering_ = gather_sums();
  }
}

// Sums that came into scratch memory go where they are kept; what spreads from the slot does so
// first, since the store only adds to it, and what spreads from the store after.
void UnitGradients::store_sums() {
  const bool spreads = !shared_.options().scatter;
  if (spreads && keeps_shard()) {
    spread_sums();
  }
  if (!file_.empty()) {
    file_.add(std::exchange(scratch_, {}), shared_.gradient_staging(), last_of_window_);
  } else if (!adds_directly()) {
    add_scratch();
  }
  if (spreads && !keeps_shard()) {
    spread_sums();
  }
}

void UnitGradients::add_scratch() {
  const at::Tensor sums = flat_view(scratch_.data(), own().size(), at::kFloat);
  const at::Tensor store = flat_view(own_sums(), own().size(), sum_type());
  if (keeps_shard()) {
    store.add_(sums);
  } else {
    store.copy_(sums);
  }
  scratch_ = {};
}

// One rank alone: the slot holds all sums of the window so far.
void UnitGradients::write_slot() {
  if (slot_ == nullptr && !last_of_window_) {
    return;  // no gradient came
  }
  if (slot_ == nullptr) {
    take_slot();
  }
  file_.start_writing(slot_->data(), last_of_window_);
  slot_is_written_ = true;
  views_.clear();
  if (!shared_.options().overlap) {
    wait();
  }
}

// All sums, from each rank's part, as they are stored.
comm::InFlight UnitGradients::gather_sums() {
  const std::size_t bytes = as_size(own().size() * width_of(shared_.options().grad_accum));
  return shared_.comm().all_gather("sums of " + unit_name_, {own_sums(), bytes}, local_.get());
}

// Without reduce_scatter every rank gets every sum, though it keeps its own part alone: the traffic
// of an all-reduce. At stage 0 they are gathered at the window's end anyway.
void UnitGradients::spread_sums() {
  const ZeroOptions& options = shared_.options();
  if (!keeps_shard()) {
    if (options.policy.shard_optimizer) {
      gather_sums().wait();
    }
    return;
  }
  const std::int64_t width = width_of(options.communication);
  std::byte* const place = slot_->data() + own().begin * width;
  flat_view(place, own().size(), scalar_type(options.communication))
      .copy_(flat_view(scratch_.data(), own().size(), at::kFloat));
  shared_.comm()
      .all_gather("sums of " + unit_name_, {place, as_size(own().size() * width)}, slot_)
      .wait();
}

void UnitGradients::finish() {
  wait();
  file_.finish();
  gathering_.wait();
}

void UnitGradients::clear() {
  shard_.set_zero();
  if (!local_.empty()) {
    std::memset(
        local_.data(), 0, as_size(layout_.padded_numel() * width_of(shared_.options().grad_accum)));
  }
  reduced_ = false;
  file_.clear();
}

Range UnitGradients::range() const noexcept {
  return shared_.options().policy.shard_optimizer ? own() : Range{0, layout_.padded_numel()};
}

at::ScalarType UnitGradients::sum_type() const noexcept {
  return scalar_type(shared_.options().grad_accum);
}

// This rank's part of the sums over ranks.
std::byte* UnitGradients::own_sums() const noexcept {
  return keeps_shard() ? shard_.data()
                       : local_.data() + own().begin * width_of(shared_.options().grad_accum);
}

Range UnitGradients::own() const noexcept {
  return layout_.shard(shared_.comm().rank());
}

bool UnitGradients::keeps_shard() const noexcept {
  return shared_.options().policy.reduce_every_micro_step;
}

// One rank alone, whose sums rest on file: a slot holds them while gradients come.
bool UnitGradients::adds_in_slot() const noexcept {
  return !file_.empty() && !keeps_shard();
}

bool UnitGradients::read_copies() const noexcept {
  return shared_.options().grad_accum != NumberType::kFloat32;
}

std::byte* UnitGradients::stored_at(std::int64_t element) const noexcept {
  const std::int64_t width = width_of(shared_.options().grad_accum);
  return local_.empty() ? shard_.data() + (element - own().begin) * width
                        : local_.data() + element * width;
}

at::Tensor UnitGradients::stored(Range part) const {
  return flat_view(stored_at(part.begin), part.size(), sum_type());
}

std::span<const float> UnitGradients::read(Range part,
                                           const std::byte* stored,
                                           FlatBuffer& scratch) const {
  const std::byte* const sums = stored != nullptr ? stored : stored_at(range().begin + part.begin);
  const std::size_t count = as_size(part.size());
  if (!read_copies()) {
    return {reinterpret_cast<const float*>(sums), count};
  }
  flat_view(scratch.data(), part.size(), at::kFloat)
      .copy_(flat_view(const_cast<std::byte*>(sums), part.size(), sum_type()));
  return scratch.as<const float>().first(count);
}

double UnitGradients::sum_of_squares(Range part) const {
  const NumberType type = shared_.options().grad_accum;
  if (file_.empty()) {
    return zero::sum_of_squares(stored_at(range().begin + part.begin), part.size(), type);
  }
  if (part == Range{0, range().size()}) {
    return file_.squares();
  }
  const at::Tensor sums = file_.copy().narrow(0, part.begin, part.size());
  return zero::sum_of_squares(static_cast<const std::byte*>(sums.data_ptr()), part.size(), type);
}

at::Tensor UnitGradients::gather() {
  finish();
  comm::Communicator& comm = shared_.comm();
  const std::string label = "gradients of " + unit_name_;
  if (!keeps_shard() && !reduced_ && file_.empty()) {  // each rank has its own
    at::Tensor sums = at::empty({layout_.padded_numel()}, at::kFloat);
    sums.copy_(stored({0, layout_.padded_numel()}));
    comm.all_reduce(label, {sums.data_ptr<float>(), as_size(sums.numel())}).wait();
    return sums;
  }
  const at::Tensor own_values =
      file_.empty() ? flat_view(own_sums(), own().size(), sum_type()) : file_.copy();
  const at::Tensor mine = own_values.to(at::kFloat);
  return gather_floats(comm, label, {mine.data_ptr<float>(), as_size(mine.numel())});
}

void UnitGradients::overwrite(Range part, const at::Tensor& values) {
  finish();
  const auto write = [&](std::byte* base, Range held) {
    const Range here = shard::intersect(part, held);
    if (here.size() > 0) {
      const std::int64_t width = width_of(shared_.options().grad_accum);
      flat_view(base + (here.begin - held.begin) * width, here.size(), sum_type())
          .copy_(values.narrow(0, here.begin - part.begin, here.size()));
    }
  };
  if (!file_.empty()) {
    const at::Tensor sums = file_.copy();
    write(static_cast<std::byte*>(sums.data_ptr()), own());
    file_.overwrite(sums);
    return;
  }
  if (keeps_shard()) {
    write(shard_.data(), own());
  }
  if (local_.empty()) {
    return;
  }
  write(local_.data(), {0, layout_.padded_numel()});
  if (!keeps_shard() && !reduced_ && shared_.comm().rank() != 0) {
    stored(part).zero_();  // what the ranks hold is added up later
  }
}

void UnitGradients::point_views_at(void* data, NumberType type) {
  views_.clear();
  for (std::size_t index = 0; index < sizes_.size(); ++index) {
    auto* const place =
        static_cast<std::byte*>(data) + layout_.parameter(index).begin * width_of(type);
    views_.push_back(at::from_blob(place, sizes_[index], at::TensorOptions(scalar_type(type))));
  }
}

}  // namespace zeroth::zero
