#include "zero/unit_state.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "optim/norm.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

namespace zeroth::zero {
namespace {

using memory::FlatBuffer;
using memory::Purpose;
using shard::Range;

// Memory of this rank alone, as a target of collectives.
class TensorBuffer : public comm::Buffer {
 public:
  explicit TensorBuffer(at::Tensor tensor) : tensor_(std::move(tensor)) {}

  [[nodiscard]] std::byte* data() const noexcept override {
    return static_cast<std::byte*>(tensor_.data_ptr());
  }

  [[nodiscard]] std::int64_t bytes() const noexcept override {
    return static_cast<std::int64_t>(tensor_.nbytes());
  }

 private:
  at::Tensor tensor_;
};

std::vector<models::Parameter*> trainable_of(models::Unit& unit) {
  std::vector<models::Parameter*> trainable;
  for (models::Parameter& parameter : unit.parameters()) {
    if (parameter.trainable) {
      trainable.push_back(&parameter);
    }
  }
  return trainable;
}

shard::FlatLayout layout_of(const std::vector<models::Parameter*>& parameters,
                            std::int64_t num_shards) {
  std::vector<std::int64_t> numels;
  for (const models::Parameter* parameter : parameters) {
    numels.push_back(parameter->value.numel());
  }
  return {numels, num_shards};
}

at::Tensor flat_view(void* data, std::int64_t numel, at::ScalarType dtype) {
  return at::from_blob(data, {numel}, at::TensorOptions(dtype));
}

template <typename T>
std::span<const std::byte> bytes_of(std::span<T> values) {
  return std::as_bytes(values);
}

}  // namespace

UnitState::UnitState(models::Unit& unit, std::shared_ptr<SharedState> shared)
    : unit_(&unit),
      shared_(std::move(shared)),
      trainable_(trainable_of(unit)),
      layout_(layout_of(trainable_, shared_->comm().size())),
      element_bytes_(static_cast<std::int64_t>(c10::elementSize(shared_->options().dtype))) {
  if (trainable_.empty()) {
    return;
  }
  allocate();
  adopt_parameters();
  make_leaves();
  build_segments();
}

void UnitState::allocate() {
  const ZeroOptions& options = shared_->options();
  const auto& tally = shared_->tally();
  const auto wide = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t padded = layout_.padded_numel();
  const std::int64_t weights_bytes =
      (options.policy.shard_parameters ? layout_.shard_numel() : padded) * element_bytes_;
  weights_ = CountedBuffer(
      shared_->comm().allocate(weights_bytes), weights_bytes, Purpose::kWeights, tally);
  if (options.policy.shard_gradients) {
    gradient_shard_ = FlatBuffer(layout_.shard_numel() * wide, Purpose::kGradients, tally);
  } else {
    gradients_ = CountedBuffer(
        shared_->comm().allocate(padded * wide), padded * wide, Purpose::kGradients, tally);
    gradient_views_ = views(gradients_.data(), at::kFloat);
  }
  const std::int64_t own_bytes = own_range().size() * wide;
  if (options.dtype != at::kFloat) {
    master_ = FlatBuffer(own_bytes, Purpose::kMaster, tally);
  }
  for (int moment = 0; moment < options.num_moments; ++moment) {
    moments_[static_cast<std::size_t>(moment)] = FlatBuffer(own_bytes, Purpose::kMoments, tally);
  }
}

// Lays each parameter's first value into the flat storage: this rank's part of the master, and the
// weights it holds.
void UnitState::adopt_parameters() {
  at::Tensor values = at::empty({layout_.padded_numel()}, at::kFloat).zero_();
  const std::vector<at::Tensor> places = views(values.data_ptr(), at::kFloat);
  for (std::size_t index = 0; index < trainable_.size(); ++index) {
    places[index].copy_(trainable_[index]->value);
  }
  const Range held =
      shared_->options().policy.shard_parameters ? own_range() : Range{0, layout_.padded_numel()};
  flat_view(weights_.data(), held.size(), shared_->options().dtype)
      .copy_(values.narrow(0, held.begin, held.size()));
  if (master_.bytes() > 0) {
    const Range own = own_range();
    flat_view(master_.data(), own.size(), at::kFloat)
        .copy_(values.narrow(0, own.begin, own.size()));
  }
}

// The leaves share one storage. At stage 3 its memory is there only while the unit is acquired.
void UnitState::make_leaves() {
  const at::ScalarType dtype = shared_->options().dtype;
  const std::int64_t bytes = layout_.padded_numel() * element_bytes_;
  void* const data = shared_->options().policy.shard_parameters ? nullptr : weights_.data();
  const c10::Storage storage(
      c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(data, c10::kCPU), nullptr, false);
  full_ = at::empty({0}, at::TensorOptions(dtype)).set_(storage, 0, {layout_.padded_numel()}, {1});
  for (std::size_t index = 0; index < trainable_.size(); ++index) {
    const Range range = layout_.parameter(index);
    const at::Tensor view =
        full_.narrow(0, range.begin, range.size()).view(trainable_[index]->value.sizes());
    trainable_[index]->value = view.detach().requires_grad_(true);
    leaves_.push_back(trainable_[index]->value);
  }
}

// Stretches of this rank's range, counted from its begin, that decay or do not; padding is in none.
void UnitState::build_segments() {
  const Range own = own_range();
  for (std::size_t index = 0; index < trainable_.size(); ++index) {
    const Range part = shard::intersect(layout_.parameter(index), own);
    if (part.size() == 0) {
      continue;
    }
    const optim::Segment segment{
        .range = {.begin = part.begin - own.begin, .end = part.end - own.begin},
        .decays = trainable_[index]->decays,
        .parameter = static_cast<std::int64_t>(index)};
    if (!segments_.empty() && optim::move_alike(segments_.back(), segment)) {
      segments_.back().range.end = segment.range.end;
    } else {
      segments_.push_back(segment);
    }
  }
}

void UnitState::prefetch() {
  if (!shared_->options().policy.shard_parameters || leaves_.empty() || gathered_ != nullptr) {
    return;
  }
  gathered_ = shared_->gathered().take();
  const std::int64_t shard_bytes = layout_.shard_numel() * element_bytes_;
  gathering_ = shared_->comm().all_gather("weights of " + unit_->name(),
                                          {weights_.data(), static_cast<std::size_t>(shard_bytes)},
                                          gathered_);
}

void UnitState::acquire() {
  if (holders_++ > 0) {
    return;
  }
  prefetch();
  if (gathered_ != nullptr) {
    gathering_.wait();
    full_.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(
        c10::DataPtr(gathered_->data(), c10::kCPU));
  }
}

void UnitState::release() {
  ZEROTH_CHECK(holders_ > 0, "unit {} is released more often than acquired", unit_->name());
  if (--holders_ == 0 && gathered_ != nullptr) {
    full_.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(c10::DataPtr(nullptr, c10::kCPU));
    shared_->gathered().give(std::move(gathered_));
    gathered_ = nullptr;
  }
}

void UnitState::accumulate(std::size_t index, const at::Tensor& gradient) {
  if (shared_->options().policy.shard_gradients && micro_gradients_ == nullptr) {
    micro_gradients_ = shared_->micro_gradients().take();
    std::memset(micro_gradients_->data(),
                0,
                static_cast<std::size_t>(layout_.padded_numel()) * sizeof(float));
    gradient_views_ = views(micro_gradients_->data(), at::kFloat);
  }
  if (gradient.defined()) {
    gradient_views_.at(index).add_(gradient);
  }
}

void UnitState::submit_gradients() {
  if (!shared_->options().policy.shard_gradients || leaves_.empty()) {
    return;
  }
  accumulate(0, {});  // a rank without a gradient takes part with zeros
  start_reduction(micro_gradients_, gradient_shard_.as<float>(), /*accumulate=*/true);
}

void UnitState::wait_gradients() {
  for (comm::InFlight& reduction : reductions_) {
    reduction.wait();
  }
  reductions_.clear();
  if (micro_gradients_ != nullptr) {
    gradient_views_.clear();
    shared_->micro_gradients().give(std::move(micro_gradients_));
    micro_gradients_ = nullptr;
  }
}

void UnitState::finish_gradients() {
  if (leaves_.empty()) {
    return;
  }
  wait_gradients();
  const StagePolicy& policy = shared_->options().policy;
  if (policy.shard_gradients || shared_->comm().size() == 1) {
    return;
  }
  // In place: only this rank reads its own range of its own buffer.
  const Range own = layout_.shard(shared_->comm().rank());
  auto* const values = reinterpret_cast<float*>(gradients_.data());
  start_reduction(gradients_.get(),
                  {values + own.begin, static_cast<std::size_t>(own.size())},
                  /*accumulate=*/false);
  wait_gradients();
  if (!policy.shard_optimizer) {
    const std::span<const float> reduced(values + own.begin, static_cast<std::size_t>(own.size()));
    shared_->comm()
        .all_gather("gradients of " + unit_->name(), bytes_of(reduced), gradients_.get())
        .wait();
  }
}

void UnitState::start_reduction(const comm::BufferPtr& input,
                                std::span<float> output,
                                bool accumulate) {
  comm::Communicator& comm = shared_->comm();
  const Range own = layout_.shard(comm.rank());
  for (std::int64_t begin = 0; begin < layout_.padded_numel();
       begin += shared_->options().bucket_elements) {
    const Range bucket{
        begin, std::min(layout_.padded_numel(), begin + shared_->options().bucket_elements)};
    std::vector<comm::Span> ranges;
    for (std::int64_t rank = 0; rank < comm.size(); ++rank) {
      const Range part = shard::intersect(bucket, layout_.shard(rank));
      ranges.push_back({part.begin, part.end});
    }
    const Range part = shard::intersect(bucket, own);
    const std::span<float> target =
        output.subspan(static_cast<std::size_t>(std::max<std::int64_t>(0, part.begin - own.begin)) *
                           static_cast<std::size_t>(part.size() > 0),
                       static_cast<std::size_t>(part.size()));
    reductions_.push_back(comm.reduce_scatter(
        "gradients of " + unit_->name(), input, std::move(ranges), target, accumulate));
  }
}

void UnitState::clear_gradients() {
  gradient_shard_.set_zero();
  if (!gradients_.empty()) {
    std::memset(
        gradients_.data(), 0, static_cast<std::size_t>(layout_.padded_numel()) * sizeof(float));
  }
}

double UnitState::sum_of_squares(std::int64_t rank) const {
  if (leaves_.empty()) {
    return 0;
  }
  const Range own = own_range();
  const Range part = shard::intersect(layout_.shard(rank), own);
  return optim::sum_of_squares(reduced_gradients().subspan(
      static_cast<std::size_t>(part.begin - own.begin), static_cast<std::size_t>(part.size())));
}

optim::ShardView UnitState::shard() const {
  return {.master = master(),
          .gradients = reduced_gradients(),
          .moments = {moments_[0].as<float>(), moments_[1].as<float>()},
          .segments = segments_};
}

void UnitState::publish() {
  if (leaves_.empty()) {
    return;
  }
  const Range own = own_range();
  if (master_.bytes() > 0) {
    // Through raw storage: autograd must not count this as a change of the leaves.
    flat_view(weights_at(own.begin), own.size(), shared_->options().dtype)
        .copy_(flat_view(master_.data(), own.size(), at::kFloat));
  }
  const StagePolicy& policy = shared_->options().policy;
  if (policy.shard_optimizer && !policy.shard_parameters && shared_->comm().size() > 1) {
    const std::span<const std::byte> part(weights_at(own.begin),
                                          static_cast<std::size_t>(own.size() * element_bytes_));
    shared_->comm().all_gather("updated weights of " + unit_->name(), part, weights_.get()).wait();
  }
}

at::Tensor UnitState::gather_master() const {
  return gather("master weights", master());
}

at::Tensor UnitState::gather_gradients() const {
  comm::Communicator& comm = shared_->comm();
  if (comm.size() == 1 || shared_->options().policy.shard_gradients) {
    return gather("gradients",
                  shared_->options().policy.shard_gradients ? gradient_shard_.as<const float>()
                                                            : reduced_gradients());
  }
  // Not reduced yet: each rank has its own.
  const auto* const values = reinterpret_cast<const float*>(gradients_.data());
  at::Tensor copy = at::empty({layout_.padded_numel()}, at::kFloat);
  std::memcpy(copy.data_ptr(), values, copy.nbytes());
  comm.all_reduce("gradients of " + unit_->name(),
                  {copy.data_ptr<float>(), static_cast<std::size_t>(copy.numel())})
      .wait();
  return copy;
}

at::Tensor UnitState::gather(const std::string& what, std::span<const float> own) const {
  at::Tensor full = at::empty({layout_.padded_numel()}, at::kFloat);
  if (static_cast<std::int64_t>(own.size()) == layout_.padded_numel()) {
    std::memcpy(full.data_ptr(), own.data(), full.nbytes());
    return full;
  }
  shared_->comm()
      .all_gather(
          what + " of " + unit_->name(), bytes_of(own), std::make_shared<TensorBuffer>(full))
      .wait();
  return full;
}

Range UnitState::own_range() const noexcept {
  return shared_->options().policy.shard_optimizer
             ? layout_.shard(shared_->comm().rank())
             : Range{.begin = 0, .end = layout_.padded_numel()};
}

std::span<float> UnitState::master() const {
  if (master_.bytes() > 0) {
    return master_.as<float>();
  }
  const Range own = own_range();
  return {reinterpret_cast<float*>(weights_at(own.begin)), static_cast<std::size_t>(own.size())};
}

std::span<const float> UnitState::reduced_gradients() const {
  if (shared_->options().policy.shard_gradients) {
    return gradient_shard_.as<const float>();
  }
  const Range own = own_range();
  return {reinterpret_cast<const float*>(gradients_.data()) + own.begin,
          static_cast<std::size_t>(own.size())};
}

std::byte* UnitState::weights_at(std::int64_t element) const {
  const std::int64_t first = shared_->options().policy.shard_parameters ? own_range().begin : 0;
  return weights_.data() + (element - first) * element_bytes_;
}

std::vector<at::Tensor> UnitState::views(void* data, at::ScalarType dtype) const {
  const auto bytes = static_cast<std::int64_t>(c10::elementSize(dtype));
  std::vector<at::Tensor> result;
  for (std::size_t index = 0; index < trainable_.size(); ++index) {
    auto* const place = static_cast<std::byte*>(data) + layout_.parameter(index).begin * bytes;
    result.push_back(
        at::from_blob(place, trainable_[index]->value.sizes(), at::TensorOptions(dtype)));
  }
  return result;
}

}  // namespace zeroth::zero
