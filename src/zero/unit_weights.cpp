#include "zero/unit_weights.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "zero/first_values.h"
#include "zero/numbers.h"

#include <ATen/ops/empty.h>

namespace zeroth::zero {
namespace {

using memory::Purpose;
using shard::Range;

constexpr std::array<std::int64_t, 1> kNothing{0};

std::size_t as_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

}  // namespace

UnitWeights::UnitWeights(std::string unit_name,
                         const std::vector<models::Parameter*>& parameters,
                         const shard::FlatLayout& layout,
                         bool on_file,
                         SharedState& shared)
    : unit_name_(std::move(unit_name)),
      layout_(layout),
      shared_(shared),
      element_bytes_(static_cast<std::int64_t>(c10::elementSize(shared.options().dtype))) {
  const ZeroOptions& options = shared_.options();
  const std::int64_t padded = layout_.padded_numel();
  const bool sharded = options.policy.shard_parameters;
  passes_ = sharded && padded > options.persistence_elements;
  if (on_file) {
    resting_ = Array(held().size(), element_bytes_, shared_.parameter_space());
  } else {
    const std::int64_t kept_bytes = held().size() * element_bytes_;
    kept_ = CountedBuffer(
        shared_.comm().allocate(kept_bytes), kept_bytes, Purpose::kWeights, shared_.tally());
  }
  if (sharded && !passes_ && shared_.comm().size() > 1) {
    const std::int64_t bytes = padded * element_bytes_;
    whole_ = CountedBuffer(shared_.comm().allocate_shared(bytes),
                           bytes / shared_.comm().size(),
                           Purpose::kGatherWindow,
                           shared_.tally());
  }
  read_first_values(parameters, layout_, held(), [this](Range part, const at::Tensor& values) {
    store(part, values);
  });
  make_leaves(parameters);
}

void UnitWeights::store(Range range, const at::Tensor& values) const {
  if (resting_.empty()) {
    flat_view(at(range.begin), range.size(), shared_.options().dtype).copy_(values);
    return;
  }
  const at::Tensor rounded = values.to(shared_.options().dtype);
  resting_.copy_in(range.begin - held().begin, bytes_of(rounded));
}

// The leaves share one storage. At stage 3 its memory is there only while the unit is acquired. A
// parameter's tensor stays the one that its owner knows: a module may hold it as well.
void UnitWeights::make_leaves(const std::vector<models::Parameter*>& parameters) {
  const std::int64_t bytes = layout_.padded_numel() * element_bytes_;
  const c10::Storage storage(
      c10::Storage::use_byte_size_t(), bytes, c10::DataPtr(nullptr, c10::kCPU), nullptr, false);
  full_ = at::empty({0}, at::TensorOptions(shared_.options().dtype))
              .set_(storage, 0, {layout_.padded_numel()}, {1});
  for (std::size_t index = 0; index < parameters.size(); ++index) {
    models::Parameter& parameter = *parameters[index];
    const Range range = layout_.parameter(index);
    const at::Tensor view =
        full_.narrow(0, range.begin, range.size()).view(parameter.sizes()).detach();
    if (parameter.value.defined()) {
      parameter.value.set_data(view);
    } else {
      parameter.value = view;
    }
    parameter.value.requires_grad_(true);
    parameter.shape = view.sizes().vec();
    leaves_.push_back(parameter.value);
    sizes_.push_back(parameter.shape);
  }
  if (!whole_.empty()) {
    publish();
    point_at(whole_.data());
  } else {
    point_at(passes_ ? nullptr : kept_.data());
  }
}

void UnitWeights::prefetch() {
  if (!gathers() || (!resting_.empty() && !shared_.weight_staging().has_free())) {
    return;
  }
  start_gathering();
}

void UnitWeights::start_gathering() {
  gathered_ = shared_.gathered().take();
  shared_.add_live_elements(layout_.padded_numel());
  if (resting_.empty()) {
    gather_into(gathered_, kept_.data(), "weights", layout_.padded_numel());
  } else {
    start_reading();
  }
}

void UnitWeights::acquire() {
  if (holders_++ > 0) {
    return;
  }
  if (gathers()) {
    start_gathering();
  }
  finish_reading();
  settle();
  if (gathered_ != nullptr) {
    point_at(gathered_->data());
  }
}

// One rank alone reads the whole into its place; of several, each brings its shard to the others.
void UnitWeights::start_reading() {
  const bool alone = shared_.comm().size() == 1;
  staged_ = alone ? memory::FlatBuffer() : shared_.weight_staging().take();
  reading_ = resting_.start_reading(0, held().size(), alone ? gathered_->data() : staged_.data());
  reads_ = true;
}

void UnitWeights::finish_reading() {
  if (!reads_) {
    return;
  }
  reading_.wait();
  reads_ = false;
  if (staged_.bytes() > 0) {
    gather_into(gathered_, staged_.data(), "weights", layout_.padded_numel());
    settle();
    shared_.weight_staging().give(std::move(staged_));
    staged_ = {};
  }
}

void UnitWeights::release() {
  ZEROTH_CHECK(holders_ > 0, "unit {} is released more often than acquired", unit_name_);
  if (--holders_ == 0 && gathered_ != nullptr) {
    point_at(nullptr);
    shared_.gathered().give(std::move(gathered_));
    gathered_ = nullptr;
    shared_.add_live_elements(-layout_.padded_numel());
  }
}

void UnitWeights::publish() {
  const StagePolicy& policy = shared_.options().policy;
  const bool alone = shared_.comm().size() == 1;
  if (leaves_.empty() || !policy.shard_optimizer || alone || passes_) {
    return;
  }
  gather_into(whole_.empty() ? kept_.get() : whole_.get(),
              at(layout_.shard(shared_.comm().rank()).begin),
              "updated weights",
              shared_.options().allgather_bucket_elements);
  if (!shared_.options().overlap) {
    settle();
  }
}

// `own`: this rank's shard. In gathers of at most `bucket` elements over all ranks.
void UnitWeights::gather_into(const comm::BufferPtr& full,
                              const std::byte* own,
                              const std::string& what,
                              std::int64_t bucket) {
  comm::Communicator& comm = shared_.comm();
  const std::int64_t size = layout_.shard_numel();
  const std::int64_t piece = std::max<std::int64_t>(1, bucket / comm.size());
  for (std::int64_t begin = 0; begin < size; begin += piece) {
    const std::int64_t count = std::min(piece, size - begin);
    transfers_.push_back(comm.all_gather(
        what + " of " + unit_name_,
        {own + begin * element_bytes_, as_size(count * element_bytes_)},
        full,
        {.stride = as_size(size * element_bytes_), .offset = as_size(begin * element_bytes_)}));
  }
}

void UnitWeights::settle() {
  for (comm::InFlight& transfer : transfers_) {
    transfer.wait();
  }
  transfers_.clear();
}

// Without memory the leaves are empty: a use outside finds no numbers rather than a null pointer.
void UnitWeights::point_at(void* data) const {
  for (std::size_t index = 0; index < leaves_.size(); ++index) {
    if (!sizes_[index].empty()) {
      leaves_[index].unsafeGetTensorImpl()->set_sizes_contiguous(
          data != nullptr ? c10::IntArrayRef(sizes_[index]) : c10::IntArrayRef(kNothing));
    }
  }
  full_.storage().unsafeGetStorageImpl()->set_data_ptr_noswap(c10::DataPtr(data, c10::kCPU));
}

Range UnitWeights::held() const noexcept {
  return shared_.options().policy.shard_parameters ? layout_.shard(shared_.comm().rank())
                                                   : Range{0, layout_.padded_numel()};
}

std::byte* UnitWeights::at(std::int64_t element) const noexcept {
  return kept_.data() + (element - held().begin) * element_bytes_;
}

}  // namespace zeroth::zero
