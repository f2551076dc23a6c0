#include "zero/unit_state.h"

#include "base/check.h"

#include <ATen/ops/from_blob.h>

namespace zeroth::zero {
namespace {

using memory::FlatBuffer;
using memory::Purpose;

std::vector<models::Parameter*> trainable_of(models::Unit& unit) {
  std::vector<models::Parameter*> trainable;
  for (models::Parameter& parameter : unit.parameters()) {
    if (parameter.trainable) {
      trainable.push_back(&parameter);
    }
  }
  return trainable;
}

shard::FlatLayout layout_of(const std::vector<models::Parameter*>& parameters) {
  std::vector<std::int64_t> numels;
  for (const models::Parameter* parameter : parameters) {
    numels.push_back(parameter->value.numel());
  }
  return {numels, /*num_shards=*/1};
}

std::int64_t element_bytes(at::ScalarType dtype) {
  return static_cast<std::int64_t>(c10::elementSize(dtype));
}

}  // namespace

UnitState::UnitState(models::Unit& unit,
                     const UnitStateOptions& options,
                     const std::shared_ptr<memory::Tally>& tally)
    : unit_(&unit), trainable_(trainable_of(unit)), layout_(layout_of(trainable_)) {
  ZEROTH_CHECK(
      options.num_moments >= 0 && options.num_moments <= 2, "{} moments", options.num_moments);
  const std::int64_t numel = layout_.padded_numel();
  const std::int64_t wide_bytes = numel * element_bytes(at::kFloat);
  weights_ = FlatBuffer(numel * element_bytes(options.dtype), Purpose::kWeights, tally);
  gradients_ = FlatBuffer(wide_bytes, Purpose::kGradients, tally);
  if (options.dtype != at::kFloat) {
    master_ = FlatBuffer(wide_bytes, Purpose::kMaster, tally);
  }
  for (int moment = 0; moment < options.num_moments; ++moment) {
    moments_[static_cast<std::size_t>(moment)] = FlatBuffer(wide_bytes, Purpose::kMoments, tally);
  }
  adopt_parameters(options.dtype);
  build_segments();
}

// Copies each parameter's first value into the flat storage and points the parameter there.
void UnitState::adopt_parameters(at::ScalarType dtype) {
  for (std::size_t index = 0; index < trainable_.size(); ++index) {
    models::Parameter& parameter = *trainable_[index];
    const at::Tensor weight = view_of(weights_, index, dtype);
    weight.copy_(parameter.value);
    if (master_.bytes() > 0) {
      view_of(master_, index, at::kFloat).copy_(parameter.value);
    }
    gradient_views_.push_back(view_of(gradients_, index, at::kFloat));
    parameter.value = weight.requires_grad_(true);
    leaves_.push_back(parameter.value);
  }
}

void UnitState::build_segments() {
  for (std::size_t index = 0; index < trainable_.size(); ++index) {
    const shard::Range range = layout_.parameter(index);
    const bool decays = trainable_[index]->decays;
    if (!segments_.empty() && segments_.back().decays == decays) {
      segments_.back().range.end = range.end;
    } else {
      segments_.push_back({.range = range, .decays = decays});
    }
  }
}

void UnitState::acquire() {
  ++holders_;
}

void UnitState::release() {
  ZEROTH_CHECK(holders_ > 0, "unit {} is released more often than acquired", unit_->name());
  --holders_;
}

void UnitState::accumulate(std::size_t index, const at::Tensor& gradient) {
  if (gradient.defined()) {
    gradient_views_.at(index).add_(gradient);
  }
}

void UnitState::clear_gradients() {
  gradients_.set_zero();
}

std::span<float> UnitState::master() const {
  return master_.bytes() > 0 ? master_.as<float>() : weights_.as<float>();
}

optim::ShardView UnitState::shard() const {
  return {.master = master(),
          .gradients = gradients(),
          .moments = {moments_[0].as<float>(), moments_[1].as<float>()},
          .segments = segments_};
}

void UnitState::publish() {
  // Through raw storage: autograd must not count this as a change of the leaves.
  if (master_.bytes() > 0) {
    const std::vector<std::int64_t> shape{layout_.padded_numel()};
    at::from_blob(weights_.data(), shape, at::TensorOptions(leaves_.front().scalar_type()))
        .copy_(at::from_blob(master_.data(), shape, at::TensorOptions(at::kFloat)));
  }
}

at::Tensor UnitState::master_value(std::size_t index) const {
  return view_of(master_.bytes() > 0 ? master_ : weights_, index, at::kFloat).clone();
}

at::Tensor UnitState::gradient_value(std::size_t index) const {
  return gradient_views_.at(index).clone();
}

at::Tensor UnitState::view_of(const FlatBuffer& buffer,
                              std::size_t index,
                              at::ScalarType dtype) const {
  std::byte* data = buffer.data() + layout_.parameter(index).begin * element_bytes(dtype);
  return at::from_blob(data, trainable_[index]->value.sizes(), at::TensorOptions(dtype));
}

}  // namespace zeroth::zero
