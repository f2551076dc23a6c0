#include "plan/packing.h"

#include "plan/byte_size.h"
#include <fmt/format.h>

namespace zeroth::plan {
namespace {

Bytes needed(const PlanInput& input, const ModelSize& model) {
  const Needs needs = needs_of(input, model);
  return needs.device.total() + needs.host;
}

bool fits(const PlanInput& input, const ModelSize& model, const PackingRoom& room) {
  const bool shared = input.share_frozen && input.ranks_on_host() > 1;
  return needed(input, model) <= room.rank &&
         (!shared || packed_bytes(input, model) <= room.shared);
}

const char* products_of(PackedFor packed) {
  switch (packed) {
    case PackedFor::kBoth:
      return "forward and backward";
    case PackedFor::kForward:
      return "forward alone";
    case PackedFor::kNothing:
      break;
  }
  return "nothing";
}

}  // namespace

PackingRoom packing_room(const PlanInput& input, Bytes rank) {
  return {.rank = rank, .shared = rank * input.ranks_on_host()};
}

PlanInput settle_packing(PlanInput input, const PackingRoom& room) {
  return input.chooses_packed ? settle_packing(input, size_of(input), room) : input;
}

PlanInput settle_packing(PlanInput input, const ModelSize& model, const PackingRoom& room) {
  if (!input.chooses_packed) {
    return input;
  }
  for (const PackedFor packed : {PackedFor::kBoth, PackedFor::kForward}) {
    input.packed = packed;
    if (fits(input, model, room)) {
      return input;
    }
  }
  input.packed = PackedFor::kNothing;
  return input;
}

std::string packing_line(const PlanInput& input, const PackingRoom& room) {
  if (!input.chooses_packed && input.packed == PackedFor::kNothing) {
    return "";
  }
  const ModelSize model = size_of(input);
  if (model.packed_forward == 0) {
    return "";
  }
  const std::string what = fmt::format("frozen weights are packed for {}, {} a host",
                                       products_of(input.packed),
                                       byte_text(packed_bytes(input, model)));
  if (!input.chooses_packed) {
    return what + ": pack_weights is forward";
  }
  const std::string there = byte_text(room.rank) + " a rank";
  if (input.packed == PackedFor::kBoth) {
    return fmt::format("{}: {} are needed of {}", what, byte_text(needed(input, model)), there);
  }
  PlanInput more = input;
  more.packed = input.packed == PackedFor::kForward ? PackedFor::kBoth : PackedFor::kForward;
  return needed(more, model) <= room.rank
             ? fmt::format("{}: more would not fit into the {} of shared memory",
                           what,
                           byte_text(room.shared))
             : fmt::format("{}: with more {} were needed of {}",
                           what,
                           byte_text(needed(more, model)),
                           there);
}

}  // namespace zeroth::plan
