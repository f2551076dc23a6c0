#include "plan/needs.h"

#include <utility>

#include "plan/files.h"

namespace zeroth::plan {
namespace {

constexpr std::int64_t kWide = 4;  // fp32

// Master, moments, and the gradients that are kept in shards. Whole gradients stay on the device,
// where every backward adds to them.
void move_optimizer_to_host(const PlanInput& input, Needs& needs) {
  StateBytes& states = needs.device.states;
  needs.host += std::exchange(states.master, Bytes()) + std::exchange(states.moments, Bytes());
  if (sharding_of(input).gradients) {
    needs.host += std::exchange(states.gradients, Bytes());
  }
}

// The trainable shard, and the frozen weights, of which a host needs one copy.
void move_parameters_to_host(const PlanInput& input, const ModelSize& model, Needs& needs) {
  const Bytes shard = Bytes(input.compute_bytes) * model.shard;
  const Bytes frozen = share_of(Bytes(input.compute_bytes) * model.frozen, input.ranks_on_host());
  needs.device.states.weights = Bytes();
  needs.host += shard + frozen;
}

// Frozen weights are in their model's own files.
void move_to_files(const PlanInput& input, const ModelSize& model, Needs& needs) {
  const InFiles files = in_files(input, model);
  StateBytes& states = needs.device.states;
  const auto move = [&](Bytes& from, Bytes bytes) {
    from = from - bytes;
    needs.files += bytes;
  };
  const bool has_master = input.compute_bytes != kWide;
  move(states.master, Bytes(has_master ? kWide : 0) * files.optimizer);
  move(states.moments, Bytes(kWide * input.num_moments) * files.optimizer);
  move(states.gradients, Bytes(input.gradient_bytes) * files.gradients);
  move(states.weights, Bytes(input.compute_bytes) * files.parameters);
  (input.own_memory ? needs.host : needs.device.buffers) += file_buffers(input, model);
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
  if (input.offload.optimizer == Place::kHost) {
    move_optimizer_to_host(input, needs);
  }
  if (input.offload.parameters == Place::kHost && sharding_of(input).parameters) {
    move_parameters_to_host(input, model, needs);
  }
  if (input.offload.uses_files()) {
    move_to_files(input, model, needs);
  }
  return needs;
}

Bytes while_saving(const PlanInput& input, const ModelSize& model) {
  constexpr std::int64_t kCopies = 2;  // of the unit that is gathered
  return states_of(input, model).total() + Bytes(kWide) * model.largest_padded * kCopies;
}

}  // namespace zeroth::plan
