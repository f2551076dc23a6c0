#include "plan/proposal.h"

#include <algorithm>

namespace zeroth::plan {
namespace {

bool is_built(const Choice& choice) {
  return choice.status == Status::kBuilt && choice.offload == Offload{};
}

Proposal propose(const Plan& plan, const Choice& choice, std::int64_t micro_batch_rows) {
  PlanInput input = plan.input;
  input.stage = choice.stage;
  input.offload = {};
  input.micro_batch_rows = micro_batch_rows;
  input.accumulation = plan.input.micro_batch_rows * plan.input.accumulation / micro_batch_rows;
  return {.stage = choice.stage,
          .micro_batch_rows = micro_batch_rows,
          .accumulation = input.accumulation,
          .largest_micro_batch = choice.largest_micro_batch,
          .needed = needs_of(input, size_of(input)).device.total()};
}

}  // namespace

std::optional<Proposal> least_that_fits(const Plan& plan) {
  std::int64_t most = 0;
  for (const Choice& choice : plan.table) {
    most = is_built(choice) ? std::max(most, choice.largest_micro_batch) : most;
  }
  const std::int64_t rows = plan.input.micro_batch_rows * plan.input.accumulation;
  for (std::int64_t micro = std::min(most, plan.input.micro_batch_rows); micro > 0; --micro) {
    if (rows % micro != 0) {
      continue;
    }
    const auto found =
        std::find_if(plan.table.begin(), plan.table.end(), [&](const Choice& choice) {
          return is_built(choice) && choice.largest_micro_batch >= micro;
        });
    return propose(plan, *found, micro);
  }
  return std::nullopt;
}

Bytes least_needed(const Plan& plan) {
  std::optional<Bytes> least;
  for (const Choice& choice : plan.table) {
    if (is_built(choice)) {
      const Bytes needed = propose(plan, choice, 1).needed;
      least = least ? std::min(*least, needed) : needed;
    }
  }
  return *least;  // stage 0 is always there
}

}  // namespace zeroth::plan
