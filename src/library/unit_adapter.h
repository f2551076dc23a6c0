#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "models/unit.h"

#include "zeroth/model.h"

namespace zeroth::library {

// What the pass under way is about; all units of an engine look at it.
struct PassState {
  Batch batch;  // kept until backward: units may be computed again
  std::int64_t rank = 0;
  std::int64_t micro_step = 0;
  bool wants_output = false;  // the last unit gives its output, not the loss
  bool gathers = false;       // parameters are empty while their unit does not compute
};

// A unit of a program as the engine walks it. The last one computes the loss as well.
//
// Random numbers that a unit draws while it trains come from (seed, update, micro-step, rank, unit)
// alone: they differ between ranks, repeat with the run, are the same when backward computes a unit
// once more, and leave the program's own generator as it was.
class UnitAdapter final : public models::Unit {
 public:
  using LossOf = std::function<zeroth::Loss(const at::Tensor& output, const Batch& batch)>;

  // `loss`: empty but for the last unit.
  UnitAdapter(zeroth::Unit unit,
              std::int64_t index,
              LossOf loss,
              std::shared_ptr<const PassState> state);

  // Also what `name` in another unit's `borrows` means.
  void borrow(models::Parameter& parameter) { borrowed_.push_back(&parameter); }

  [[nodiscard]] const zeroth::Unit& described() const noexcept { return unit_; }

  [[nodiscard]] at::Tensor forward(const models::ForwardContext& context,
                                   const at::Tensor& input) override;

 private:
  [[nodiscard]] std::uint64_t random_seed(const models::ForwardContext& context) const noexcept;
  [[nodiscard]] at::Tensor output_of(const at::Tensor& input, bool training) const;
  [[nodiscard]] at::Tensor loss_of(const at::Tensor& output,
                                   const models::ForwardContext& context) const;

  zeroth::Unit unit_;
  std::int64_t index_;
  LossOf loss_;
  std::shared_ptr<const PassState> state_;
};

}  // namespace zeroth::library
