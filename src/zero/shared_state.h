#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "memory/tally.h"
#include "zero/counted_buffer.h"
#include "zero/zero_options.h"

namespace zeroth::zero {

// What the slots must have room for.
struct UnitSizes {
  std::vector<std::int64_t> padded_numels;  // trainable elements of each unit, padded, in order
  std::int64_t num_lenders = 0;             // units whose parameters other units read as well
};

// What all units of an engine share.
class SharedState {
 public:
  // Collective.
  SharedState(std::shared_ptr<comm::Communicator> comm,
              const ZeroOptions& options,
              const UnitSizes& sizes,
              std::shared_ptr<memory::Tally> tally);

  [[nodiscard]] comm::Communicator& comm() const noexcept { return *comm_; }

  [[nodiscard]] const ZeroOptions& options() const noexcept { return options_; }

  [[nodiscard]] const std::shared_ptr<memory::Tally>& tally() const noexcept { return tally_; }

  // Full units while they are in use (stage 3): one shared copy on each host.
  [[nodiscard]] SlotPool& gathered() noexcept { return gathered_; }

  // A unit's gradients on their way between ranks, where they do not travel from where they are
  // summed.
  [[nodiscard]] SlotPool& travelling() noexcept { return travelling_; }

  // Whether gradients leave for other ranks in a buffer of their own.
  [[nodiscard]] bool gradients_travel_apart() const noexcept {
    return options_.policy.reduce_every_micro_step ||
           (options_.communication != options_.grad_accum && comm_->size() > 1);
  }

  // Stage 3: how many units are gathered ahead of the one in use.
  [[nodiscard]] std::int64_t prefetch_depth() const noexcept { return prefetch_depth_; }

  // Elements of the units that are gathered, or being gathered, now.
  [[nodiscard]] std::int64_t live_elements() const noexcept { return live_elements_; }

  void add_live_elements(std::int64_t elements) noexcept { live_elements_ += elements; }

 private:
  [[nodiscard]] SlotPool gather_slots(const UnitSizes& sizes) const;
  [[nodiscard]] SlotPool gradient_slots(const UnitSizes& sizes) const;

  std::shared_ptr<comm::Communicator> comm_;
  ZeroOptions options_;
  std::shared_ptr<memory::Tally> tally_;
  std::int64_t prefetch_depth_;
  SlotPool gathered_;
  SlotPool travelling_;
  std::int64_t live_elements_ = 0;
};

}  // namespace zeroth::zero
