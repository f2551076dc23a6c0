#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "memory/tally.h"
#include "offload/swap_space.h"
#include "shard/on_file.h"
#include "zero/counted_buffer.h"
#include "zero/staging.h"
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

  // Of each unit.
  [[nodiscard]] const std::vector<shard::OnFile>& on_file() const noexcept { return on_file_; }

  // Where state on file is; nullptr where none is.
  [[nodiscard]] const std::shared_ptr<offload::SwapSpace>& optimizer_space() const noexcept {
    return optimizer_space_;
  }

  [[nodiscard]] const std::shared_ptr<offload::SwapSpace>& parameter_space() const noexcept {
    return parameter_space_;
  }

  // Shards of weights, and shards of gradients' sums, on their way.
  [[nodiscard]] StagingPool& weight_staging() noexcept { return *weight_staging_; }

  [[nodiscard]] StagingPool& gradient_staging() noexcept { return *gradient_staging_; }

  // Since the start, of this rank.
  [[nodiscard]] offload::Traffic traffic() const noexcept;

  // Whether gradients leave for other ranks in a buffer of their own.
  [[nodiscard]] bool gradients_travel_apart() const noexcept {
    return options_.policy.reduce_every_micro_step ||
           (options_.communication != options_.grad_accum && comm_->size() > 1);
  }

  // Whether some unit of a rank that is alone adds its gradients up in a slot, for want of memory
  // where they rest.
  [[nodiscard]] bool gradients_pass_through() const noexcept {
    return options_.gradients == Place::kFile && comm_->size() == 1;
  }

  // Stage 3: how many units are gathered ahead of the one in use.
  [[nodiscard]] std::int64_t prefetch_depth() const noexcept { return prefetch_depth_; }

  // Elements of the units that are gathered, or being gathered, now.
  [[nodiscard]] std::int64_t live_elements() const noexcept { return live_elements_; }

  void add_live_elements(std::int64_t elements) noexcept { live_elements_ += elements; }

 private:
  void open_spaces();
  void make_staging(const UnitSizes& sizes);
  [[nodiscard]] SlotPool gather_slots(const UnitSizes& sizes) const;
  [[nodiscard]] SlotPool gradient_slots(const UnitSizes& sizes) const;

  std::shared_ptr<comm::Communicator> comm_;
  ZeroOptions options_;
  std::shared_ptr<memory::Tally> tally_;
  std::int64_t prefetch_depth_;
  SlotPool gathered_;
  SlotPool travelling_;
  std::vector<shard::OnFile> on_file_;
  std::shared_ptr<offload::SwapSpace> optimizer_space_;
  std::shared_ptr<offload::SwapSpace> parameter_space_;
  std::unique_ptr<StagingPool> weight_staging_;
  std::unique_ptr<StagingPool> gradient_staging_;
  std::int64_t live_elements_ = 0;
};

}  // namespace zeroth::zero
