#include "zero/shared_state.h"

#include <algorithm>
#include <utility>

#include "shard/prefetch.h"
#include "zero/numbers.h"

namespace zeroth::zero {
namespace {

// Of the units that are gathered and released; those that stay have memory of their own.
std::int64_t largest_passing(const ZeroOptions& options, const std::vector<std::int64_t>& numels) {
  std::int64_t largest = 0;
  for (const std::int64_t numel : numels) {
    largest = std::max(largest, numel > options.persistence_elements ? numel : 0);
  }
  return largest;
}

shard::FileRule file_rule(const ZeroOptions& options, std::int64_t ranks) {
  const Resting& resting = options.resting;
  return {.optimizer = resting.optimizer == Place::kFile,
          .gradients = options.gradients == Place::kFile,
          .parameters = resting.parameters == Place::kFile && options.policy.shard_parameters,
          .optimizer_share = resting.optimizer_share,
          .parameters_kept = resting.parameters_kept * ranks,
          .persistent_parameters = options.persistence_elements};
}

std::int64_t largest_of(const std::vector<std::int64_t>& numels) {
  const auto largest = std::max_element(numels.begin(), numels.end());
  return largest == numels.end() ? 0 : *largest;
}

}  // namespace

SharedState::SharedState(std::shared_ptr<comm::Communicator> comm,
                         const ZeroOptions& options,
                         const UnitSizes& sizes,
                         std::shared_ptr<memory::Tally> tally)
    : comm_(std::move(comm)),
      options_(options),
      tally_(std::move(tally)),
      prefetch_depth_(shard::prefetch_depth(
          {.ahead = options.prefetch_elements, .live = options.max_live_elements},
          sizes.padded_numels)) {
  open_spaces();
  on_file_ = shard::on_file(file_rule(options_, comm_->size()), sizes.padded_numels);
  if (options_.policy.shard_parameters) {
    gathered_ = gather_slots(sizes);
  }
  if (gradients_travel_apart() || gradients_pass_through()) {
    travelling_ = gradient_slots(sizes);
  }
  make_staging(sizes);
}

void SharedState::open_spaces() {
  const Resting& resting = options_.resting;
  const auto open = [&](const std::filesystem::path& folder) {
    return std::make_shared<offload::SwapSpace>(folder, resting.io, resting.io_kind);
  };
  if (resting.optimizer == Place::kFile) {
    optimizer_space_ = open(resting.optimizer_folder);
  }
  if (resting.parameters == Place::kFile && options_.policy.shard_parameters) {
    const bool same =
        optimizer_space_ != nullptr && resting.parameter_folder == resting.optimizer_folder;
    parameter_space_ = same ? optimizer_space_ : open(resting.parameter_folder);
  }
}

// A unit's sums and what they are added to, of each unit whose sums are on their way, and one that
// is being written.
void SharedState::make_staging(const UnitSizes& sizes) {
  const std::int64_t shard = largest_of(sizes.padded_numels) / comm_->size();
  const auto room = [&](std::int64_t width) { return offload::aligned_up(shard * width); };
  weight_staging_ = std::make_unique<StagingPool>(
      room(static_cast<std::int64_t>(c10::elementSize(options_.dtype))),
      options_.resting.parameter_buffers.value_or(1 + prefetch_depth_ + sizes.num_lenders),
      tally_);
  gradient_staging_ = std::make_unique<StagingPool>(
      room(static_cast<std::int64_t>(sizeof(float))), 2 + sizes.num_lenders, tally_);
}

offload::Traffic SharedState::traffic() const noexcept {
  offload::Traffic total = optimizer_space_ ? optimizer_space_->traffic() : offload::Traffic{};
  if (parameter_space_ != nullptr && parameter_space_ != optimizer_space_) {
    total.read += parameter_space_->traffic().read;
    total.written += parameter_space_->traffic().written;
  }
  return total;
}

// The unit in use, those ahead of it, and those that others borrow from meanwhile.
SlotPool SharedState::gather_slots(const UnitSizes& sizes) const {
  const std::int64_t numbers = largest_passing(options_, sizes.padded_numels) *
                               static_cast<std::int64_t>(c10::elementSize(options_.dtype));
  const bool read_into = parameter_space_ != nullptr;  // whole pages come from files
  const std::int64_t bytes = read_into ? offload::aligned_up(numbers) : numbers;
  const std::int64_t num_slots = 1 + prefetch_depth_ + sizes.num_lenders;
  std::vector<CountedBuffer> slots;
  for (std::int64_t slot = 0; bytes > 0 && slot < num_slots; ++slot) {
    // One copy serves all ranks of the host; each counts its share.
    slots.emplace_back(comm_->allocate_shared(bytes),
                       bytes / comm_->size(),
                       memory::Purpose::kGatherWindow,
                       tally_);
  }
  return SlotPool(std::move(slots));
}

// The unit whose gradients come, the one whose sums are on their way, and lenders, which collect
// gradients from the borrower's backward to their own.
SlotPool SharedState::gradient_slots(const UnitSizes& sizes) const {
  const comm::NumberType type =
      gradients_pass_through() ? options_.grad_accum : options_.communication;
  const std::int64_t numbers = largest_of(sizes.padded_numels) * width_of(type);
  const std::int64_t bytes = gradients_pass_through() ? offload::aligned_up(numbers) : numbers;
  const std::int64_t num_slots = (options_.overlap ? 2 : 1) + sizes.num_lenders;
  std::vector<CountedBuffer> slots;
  for (std::int64_t slot = 0; bytes > 0 && slot < num_slots; ++slot) {
    slots.emplace_back(comm_->allocate(bytes), bytes, memory::Purpose::kBuffers, tally_);
  }
  return SlotPool(std::move(slots));
}

}  // namespace zeroth::zero
