#include "plan/states.h"

#include <algorithm>
#include <vector>

namespace zeroth::plan {
namespace {

constexpr std::int64_t kWide = 4;  // fp32: master weights, moments, gradients on their way

// The unit in use, those ahead of it, and one that another borrows from meanwhile.
std::int64_t num_gather_slots(const PlanInput& input, const ModelSize& model) {
  return 1 + shard::prefetch_depth(input.prefetch, padded_numels(model)) + num_lenders(model);
}

}  // namespace

std::int64_t num_lenders(const ModelSize& model) {
  return model.borrows ? 1 : 0;
}

std::vector<std::int64_t> padded_numels(const ModelSize& model) {
  std::vector<std::int64_t> numels;
  for (const UnitSize& unit : model.units) {
    numels.push_back(unit.padded);
  }
  return numels;
}

Sharding sharding_of(const PlanInput& input) {
  if (input.ranks == 1) {  // nobody to share with, but weights in files are brought unit by unit
    return {.parameters = input.stage >= 3 && input.offload.parameters == Place::kFiles};
  }
  const bool every = input.reduce_every_micro_step.value_or(input.stage >= 2);
  return {.optimizer = input.stage >= 1,
          .gradients = input.stage >= 1 && every,
          .parameters = input.stage >= 3,
          .reduces_every_micro_step = every};
}

bool gradients_in_files(const PlanInput& input) {
  const bool every = input.reduce_every_micro_step.value_or(input.stage >= 2);
  return input.offload.optimizer == Place::kFiles && input.stage >= 1 && every;
}

// What frozen weights take beside themselves.
Bytes packed_bytes(const PlanInput& input, const ModelSize& model) {
  switch (input.packed) {
    case PackedFor::kForward:
      return Bytes(input.compute_bytes) * model.packed_forward;
    case PackedFor::kBoth:
      return Bytes(input.compute_bytes) * (model.packed_forward + model.packed_backward);
    case PackedFor::kNothing:
      break;
  }
  return Bytes();
}

// Weights that lie in a mapped file, of which the packed ones are enough.
std::int64_t given_back(const PlanInput& input, const ModelSize& model) {
  return input.packed == PackedFor::kBoth && input.share_frozen && input.reads_file_as_stored
             ? model.packed_alone
             : 0;
}

StateBytes states_of(const PlanInput& input, const ModelSize& model) {
  const Sharding sharding = sharding_of(input);
  const auto held = [&](bool sharded) { return sharded ? model.shard : model.padded; };
  const Bytes frozen = Bytes(input.compute_bytes) * (model.frozen - given_back(input, model)) +
                       packed_bytes(input, model);
  const bool has_master = input.compute_bytes != kWide;  // fp32 weights are their own master
  return {.weights = Bytes(input.compute_bytes) * held(sharding.parameters) +
                     (input.share_frozen ? share_of(frozen, input.ranks_on_host()) : frozen),
          .gradients = Bytes(input.gradient_bytes) * held(sharding.gradients),
          .master = Bytes(has_master ? kWide : 0) * held(sharding.optimizer),
          .moments = Bytes(kWide * input.num_moments) * held(sharding.optimizer)};
}

Bytes gather_window(const PlanInput& input, const ModelSize& model) {
  if (!sharding_of(input).parameters) {
    return Bytes();
  }
  // Weights that rest on the host come whole, the frozen ones too.
  const bool away = input.offload.parameters == Place::kHost;
  std::int64_t kept = 0;  // small units, which stay
  std::int64_t largest = 0;
  for (const UnitSize& unit : model.units) {
    const bool stays = unit.padded <= input.persistence_elements;
    kept += stays && input.ranks > 1 ? unit.padded : 0;
    largest = std::max(largest, stays ? 0 : unit.padded);
  }
  const Bytes unit = Bytes(input.compute_bytes) * (away ? model.largest_unit : largest);
  const Bytes slot = input.offload.parameters == Place::kFiles ? in_pages(unit) : unit;
  const Bytes window = slot * num_gather_slots(input, model) + Bytes(input.compute_bytes) * kept;
  // Ranks of a host look at one copy; a device with memory of its own has one to itself.
  return input.own_memory ? window : share_of(window, input.ranks_on_host());
}

// The unit whose gradients come, the one whose sums are on their way, and a lender.
Bytes gradient_slots(const PlanInput& input, const ModelSize& model) {
  const bool passes_through = input.ranks == 1 && gradients_in_files(input);
  const bool travel_apart = sharding_of(input).reduces_every_micro_step || passes_through ||
                            (input.ranks > 1 && input.communication_bytes != input.gradient_bytes);
  const std::int64_t slots = (input.overlap ? 2 : 1) + num_lenders(model);
  const std::int64_t width = passes_through ? input.gradient_bytes : input.communication_bytes;
  const Bytes unit = Bytes(width) * model.largest_padded;
  return travel_apart ? (passes_through ? in_pages(unit) : unit) * slots : Bytes();
}

Bytes row_buffers(const PlanInput& input) {
  constexpr std::int64_t kId = 8;
  constexpr std::int64_t kAngle = 8;  // cosine and sine in fp64, for each pair of a head
  const std::int64_t tokens = input.row_tokens;
  constexpr std::int64_t kKey = 4;
  // Rows that begin at 0 have the same places.
  const std::int64_t places = tokens * (input.joins_rows ? input.micro_batch_rows : 1);
  const Bytes first_keys = Bytes(kKey) * places;  // of each query
  const Bytes angles = Bytes(kAngle) * places * input.model.head_dim;
  const Bytes ids = Bytes((input.joins_rows ? 3 : 2) * kId) * input.micro_batch_rows * tokens;
  const Bytes targets = Bytes(2 * kId) * input.micro_batch_rows * input.targets_per_row();
  const auto kinds =
      static_cast<std::int64_t>(input.model.layer_kinds.size());  // with or without a window
  return (first_keys + angles) * kinds + ids + targets;
}

}  // namespace zeroth::plan
