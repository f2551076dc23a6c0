#include "plan/needs.h"

#include <utility>

namespace zeroth::plan {
namespace {

constexpr std::int64_t kWide = 4;  // fp32

void put(Bytes bytes, Place place, Needs& needs) {
  (place == Place::kHost ? needs.host : needs.files) += bytes;
}

// Part of it passes through buffers on the host: one part is read while another is worked on.
void put_in_parts(Bytes bytes, Bytes part, Place place, Needs& needs) {
  put(bytes, place, needs);
  if (place == Place::kFiles) {
    needs.host += part * 2;
  }
}

// The share of a total that belongs to the largest unit.
Bytes of_largest_unit(Bytes total, const ModelSize& model) {
  const double share =
      static_cast<double>(model.largest_padded) / static_cast<double>(model.padded);
  return Bytes(static_cast<std::int64_t>(static_cast<double>(total.count()) * share));
}

// Master, moments, and the gradients that are kept in shards. Whole gradients stay on the device,
// where every backward adds to them.
void move_optimizer(const PlanInput& input, const ModelSize& model, Needs& needs) {
  StateBytes& states = needs.device.states;
  Bytes moved = std::exchange(states.master, Bytes()) + std::exchange(states.moments, Bytes());
  if (sharding_of(input).gradients) {
    moved += std::exchange(states.gradients, Bytes());
  }
  put_in_parts(moved, of_largest_unit(moved, model), input.offload.optimizer, needs);
}

// The trainable shard, and the frozen weights, of which a host needs one copy.
void move_parameters(const PlanInput& input, const ModelSize& model, Needs& needs) {
  const Bytes shard = Bytes(input.compute_bytes) * model.shard;
  const Bytes frozen = share_of(Bytes(input.compute_bytes) * model.frozen, input.ranks_on_host());
  needs.device.states.weights = Bytes();
  put_in_parts(shard + frozen,
               share_of(Bytes(input.compute_bytes) * model.largest_unit, input.ranks_on_host()),
               input.offload.parameters,
               needs);
}

}  // namespace

Needs needs_of(const PlanInput& input, const ModelSize& model) {
  Peak peak = training_peak(input, model);
  Needs needs;
  if (input.eval_rows > 0) {
    const Peak evaluation = evaluation_peak(input);
    needs.evaluation_decides = evaluation.total() > peak.total();
    peak = needs.evaluation_decides ? evaluation : peak;
  }
  needs.device = {.states = states_of(input, model),
                  .activations = peak.activations,
                  .logits = peak.logits,
                  .buffers = gradient_slots(input, model) + row_buffers(input),
                  .gather_window = gather_window(input, model)};
  if (input.offload.optimizer != Place::kDevice) {
    move_optimizer(input, model, needs);
  }
  if (input.offload.parameters != Place::kDevice && sharding_of(input).parameters) {
    move_parameters(input, model, needs);
  }
  return needs;
}

Bytes while_saving(const PlanInput& input, const ModelSize& model) {
  constexpr std::int64_t kCopies = 2;  // of the unit that is gathered
  return states_of(input, model).total() + Bytes(kWide) * model.largest_padded * kCopies;
}

}  // namespace zeroth::plan
