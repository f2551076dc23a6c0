#include "plan/files.h"

#include <algorithm>

#include "shard/kept.h"

namespace zeroth::plan {
namespace {

constexpr std::int64_t kWide = 4;                             // fp32
constexpr std::int64_t kPieceElements = 2048;                 // pieces begin at multiples
constexpr std::int64_t kMostPassing = std::int64_t{2} << 20;  // elements of one piece

std::int64_t held_of(std::int64_t padded, bool sharded, const PlanInput& input) {
  return sharded ? padded / input.ranks : padded;
}

// Of the units, which keep their weights in memory though others do not.
std::vector<bool> weights_kept(const PlanInput& input, const ModelSize& model) {
  return shard::kept_in_memory(padded_numels(model), input.streaming.parameters_kept * input.ranks);
}

bool passes(const PlanInput& input, const UnitSize& unit) {
  return unit.padded > input.persistence_elements;
}

bool has_master(const PlanInput& input) {
  return input.compute_bytes != kWide;
}

// Elements of the largest piece that passes through memory.
std::int64_t largest_piece(const PlanInput& input, const ModelSize& model) {
  const std::int64_t own = held_of(model.largest_padded, sharding_of(input).optimizer, input);
  const std::int64_t asked = input.streaming.sub_group_elements;
  const std::int64_t limit = std::min(asked <= 0 ? own : std::min(asked, own), kMostPassing);
  const std::int64_t whole = std::max(limit / kPieceElements, std::int64_t{1}) * kPieceElements;
  return std::min(whole, own);
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
  const bool optimizer = input.offload.optimizer == Place::kFiles;
  const bool parameters = input.offload.parameters == Place::kFiles && sharding.parameters;
  const std::vector<std::int64_t> numels = padded_numels(model);
  const auto state_kept =
      shard::kept_in_memory(numels, shard::elements_kept(numels, input.streaming.optimizer_share));
  const auto kept = weights_kept(input, model);
  InFiles files;
  for (std::size_t index = 0; index < model.units.size(); ++index) {
    const UnitSize& unit = model.units[index];
    if (optimizer && !state_kept[index]) {
      files.optimizer += held_of(unit.padded, sharding.optimizer, input);
      files.gradients +=
          gradients_in_files(input) ? held_of(unit.padded, sharding.gradients, input) : 0;
    }
    if (parameters && passes(input, unit) && !kept[index]) {
      files.parameters += held_of(unit.padded, sharding.parameters, input);
    }
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
  std::int64_t uses = 0;
  if (files.parameters > 0) {
    const UnitSize& last = model.units.back();
    const std::int64_t once =
        passes(input, last) && !weights_kept(input, model).back() ? last.padded / input.ranks : 0;
    uses = 2 * files.parameters - once;
  }
  const Bytes walks = Bytes(input.compute_bytes) * uses * input.accumulation;
  const Bytes as_master = has_master(input) ? Bytes() : weights;
  return {.read = state + as_master + sums * input.accumulation + walks,
          .written = state + weights + sums * input.accumulation};
}

}  // namespace zeroth::plan
