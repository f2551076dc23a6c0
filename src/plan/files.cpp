#include "plan/files.h"

#include <algorithm>

#include "shard/on_file.h"

namespace zeroth::plan {
namespace {

constexpr std::int64_t kWide = 4;  // fp32

std::int64_t held_of(std::int64_t padded, bool sharded, const PlanInput& input) {
  return sharded ? padded / input.ranks : padded;
}

// Of each unit, as the engine does it.
std::vector<shard::OnFile> on_file(const PlanInput& input, const ModelSize& model) {
  const Streaming& streaming = input.streaming;
  return shard::on_file(
      {.optimizer = input.offload.optimizer == Place::kFiles,
       .gradients = gradients_in_files(input),
       .parameters = input.offload.parameters == Place::kFiles && sharding_of(input).parameters,
       .optimizer_share = streaming.optimizer_share,
       .parameters_kept = streaming.parameters_kept * input.ranks,
       .persistent_parameters = input.persistence_elements},
      padded_numels(model));
}

bool has_master(const PlanInput& input) {
  return input.compute_bytes != kWide;
}

// Elements of the largest piece that passes through memory.
std::int64_t largest_piece(const PlanInput& input, const ModelSize& model) {
  const std::int64_t own = held_of(model.largest_padded, sharding_of(input).optimizer, input);
  const std::int64_t asked = input.streaming.sub_group_elements;
  return std::min(own, shard::piece_elements(own, asked, /*passes=*/true));
}

// Numbers of each element that come from files for an update, or go to them.
std::int64_t numbers_of_a_piece(const PlanInput& input, const InFiles& files) {
  const bool optimizer = files.optimizer > 0;
  const bool weights = files.parameters > 0;
  std::int64_t numbers = 0;
  numbers += (optimizer && has_master(input)) || (weights && !has_master(input)) ? 1 : 0;
  numbers += optimizer ? input.num_moments : 0;
  numbers += files.gradients > 0 ? 1 : 0;
  numbers += weights && has_master(input) ? 1 : 0;
  numbers += input.gradient_bytes != kWide ? 1 : 0;  // widened
  return numbers;
}

Bytes piece_buffers(const PlanInput& input, const ModelSize& model, const InFiles& files) {
  const std::int64_t slots =
      1 + (input.streaming.reads_ahead ? 1 : 0) + (input.streaming.writes_behind ? 1 : 0);
  return in_pages(Bytes(kWide) * largest_piece(input, model)) * numbers_of_a_piece(input, files) *
         slots;
}

// Of several ranks: a unit's sums and what they are added to, and one that is written.
Bytes sums_on_their_way(const PlanInput& input, const ModelSize& model, const InFiles& files) {
  if (input.ranks == 1 || files.gradients == 0) {
    return Bytes();
  }
  return in_pages(Bytes(kWide) * (model.largest_padded / input.ranks)) * (2 + num_lenders(model));
}

// Of several ranks: shards that are brought to the others. One alone reads to where it computes.
Bytes shards_on_their_way(const PlanInput& input, const ModelSize& model, const InFiles& files) {
  if (input.ranks == 1 || files.parameters == 0) {
    return Bytes();
  }
  const std::int64_t ahead = shard::prefetch_depth(input.prefetch, padded_numels(model));
  const std::int64_t used = 1 + ahead + num_lenders(model);
  const std::int64_t buffers = std::min(input.streaming.parameter_buffers.value_or(used), used);
  return in_pages(Bytes(input.compute_bytes) * (model.largest_padded / input.ranks)) * buffers;
}

}  // namespace

InFiles in_files(const PlanInput& input, const ModelSize& model) {
  const Sharding sharding = sharding_of(input);
  const std::vector<shard::OnFile> units = on_file(input, model);
  InFiles files;
  for (std::size_t index = 0; index < units.size(); ++index) {
    const std::int64_t padded = model.units[index].padded;
    const auto held = [&](bool is_there, bool sharded) {
      return is_there ? held_of(padded, sharded, input) : 0;
    };
    files.optimizer += held(units[index].optimizer, sharding.optimizer);
    files.gradients += held(units[index].gradients, sharding.gradients);
    files.parameters += held(units[index].parameters, sharding.parameters);
  }
  return files;
}

Bytes file_buffers(const PlanInput& input, const ModelSize& model) {
  const InFiles files = in_files(input, model);
  if (files.optimizer + files.gradients + files.parameters == 0) {
    return Bytes();
  }
  return piece_buffers(input, model, files) + sums_on_their_way(input, model, files) +
         shards_on_their_way(input, model, files);
}

// An update reads and writes state once. Each micro-step reads the weights twice, but for the last
// unit's, and adds to the sums, which an update reads once more.
FileTraffic file_traffic(const PlanInput& input, const ModelSize& model) {
  const InFiles files = in_files(input, model);
  const Bytes state =
      Bytes(kWide * (input.num_moments + (has_master(input) ? 1 : 0))) * files.optimizer;
  const Bytes sums = Bytes(input.gradient_bytes) * files.gradients;
  const Bytes weights = Bytes(input.compute_bytes) * files.parameters;
  const std::int64_t once =
      on_file(input, model).back().parameters ? model.units.back().padded / input.ranks : 0;
  const std::int64_t uses = 2 * files.parameters - once;
  const Bytes walks = Bytes(input.compute_bytes) * uses * input.accumulation;
  const Bytes as_master = has_master(input) ? Bytes() : weights;
  return {.read = state + as_master + sums * input.accumulation + walks,
          .written = state + weights + sums * input.accumulation};
}

}  // namespace zeroth::plan
