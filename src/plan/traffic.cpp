#include "plan/traffic.h"

#include "plan/states.h"

namespace zeroth::plan {
namespace {

// A rank's part of one pass of `whole` over all ranks.
Bytes passed(Bytes whole, std::int64_t ranks) {
  return share_of(whole, ranks) * (ranks - 1);
}

// Elements gathered by a micro-step: forward and backward of each unit but the last, which stays
// gathered between the two, a tied head's embedding as well. Small units that stay gathered are
// not among them.
std::int64_t gathered_elements(const PlanInput& input, const ModelSize& model) {
  std::int64_t elements = 0;
  for (const UnitSize& unit : model.units) {
    const std::int64_t uses = &unit == &model.units.back() ? 1 : 2;
    const auto passing = [&](std::int64_t padded) {
      return padded > input.persistence_elements ? padded : 0;
    };
    elements += uses * passing(unit.padded) + passing(unit.borrowed_padded);
  }
  return elements;
}

// Elements of the units that stay gathered: brought to all ranks once an update.
std::int64_t kept_elements(const PlanInput& input, const ModelSize& model) {
  std::int64_t elements = 0;
  for (const UnitSize& unit : model.units) {
    elements += unit.padded <= input.persistence_elements ? unit.padded : 0;
  }
  return elements;
}

}  // namespace

Traffic traffic_of(const PlanInput& input, const ModelSize& model) {
  if (input.ranks == 1) {
    return {};
  }
  const Sharding sharding = sharding_of(input);
  const Bytes gradients = passed(Bytes(input.communication_bytes) * model.padded, input.ranks);
  const Bytes weights = passed(Bytes(input.compute_bytes) * model.padded, input.ranks);
  Traffic traffic;
  traffic.gradients =
      sharding.reduces_every_micro_step ? gradients * input.accumulation : gradients;
  if (!sharding.optimizer) {
    // Every rank needs the sums: they are gathered again, as they are stored.
    traffic.gradients += passed(Bytes(input.gradient_bytes) * model.padded, input.ranks);
  } else if (sharding.parameters) {
    const Bytes walk = Bytes(input.compute_bytes) * gathered_elements(input, model);
    const Bytes kept = Bytes(input.compute_bytes) * kept_elements(input, model);
    traffic.weights = passed(walk, input.ranks) * input.accumulation + passed(kept, input.ranks);
  } else {
    traffic.weights = weights;
  }
  return traffic;
}

}  // namespace zeroth::plan
