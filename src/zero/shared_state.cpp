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
  if (options_.policy.shard_parameters) {
    gathered_ = gather_slots(sizes);
  }
  if (gradients_travel_apart()) {
    travelling_ = gradient_slots(sizes);
  }
}

// The unit in use, those ahead of it, and those that others borrow from meanwhile.
SlotPool SharedState::gather_slots(const UnitSizes& sizes) const {
  const std::int64_t bytes = largest_passing(options_, sizes.padded_numels) *
                             static_cast<std::int64_t>(c10::elementSize(options_.dtype));
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
  const auto largest = std::max_element(sizes.padded_numels.begin(), sizes.padded_numels.end());
  const std::int64_t bytes =
      largest == sizes.padded_numels.end() ? 0 : *largest * width_of(options_.communication);
  const std::int64_t num_slots = (options_.overlap ? 2 : 1) + sizes.num_lenders;
  std::vector<CountedBuffer> slots;
  for (std::int64_t slot = 0; bytes > 0 && slot < num_slots; ++slot) {
    slots.emplace_back(comm_->allocate(bytes), bytes, memory::Purpose::kBuffers, tally_);
  }
  return SlotPool(std::move(slots));
}

}  // namespace zeroth::zero
