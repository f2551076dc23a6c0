#include "plan/traffic.h"

#include "plan/states.h"

namespace zeroth::plan {
namespace {

constexpr std::int64_t kWide = 4;  // gradients travel in fp32

// A rank's part of one pass of `whole` over all ranks.
Bytes passed(Bytes whole, std::int64_t ranks) {
  return share_of(whole, ranks) * (ranks - 1);
}

// Elements gathered by one walk over the units, a tied head's embedding once more.
std::int64_t gathered_elements(const ModelSize& model) {
  std::int64_t elements = 0;
  for (const UnitSize& unit : model.units) {
    elements += unit.padded + unit.borrowed_padded;
  }
  return elements;
}

}  // namespace

Traffic traffic_of(const PlanInput& input, const ModelSize& model) {
  if (input.ranks == 1) {
    return {};
  }
  const Sharding sharding = sharding_of(input);
  const Bytes gradients = passed(Bytes(kWide) * model.padded, input.ranks);
  const Bytes weights = passed(Bytes(input.compute_bytes) * model.padded, input.ranks);
  Traffic traffic;
  traffic.gradients =
      sharding.reduces_every_micro_step ? gradients * input.accumulation : gradients;
  if (!sharding.optimizer) {
    traffic.gradients += gradients;  // every rank needs the sums: they are gathered again
  } else if (sharding.parameters) {
    // Forward and backward of every micro-step.
    const Bytes walk = Bytes(input.compute_bytes) * gathered_elements(model);
    traffic.weights = passed(walk, input.ranks) * 2 * input.accumulation;
  } else {
    traffic.weights = weights;
  }
  return traffic;
}

}  // namespace zeroth::plan
