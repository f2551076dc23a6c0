#include "plan/proposal.h"

#include <algorithm>

namespace zeroth::plan {
namespace {

Proposal propose(const Plan& plan, const Choice& choice, std::int64_t micro_batch_rows) {
  PlanInput input = plan.input;
  input.stage = choice.stage;
  input.offload = choice.offload;
  input.micro_batch_rows = micro_batch_rows;
  input.accumulation = plan.input.micro_batch_rows * plan.input.accumulation / micro_batch_rows;
  return {.stage = choice.stage,
          .offload = choice.offload,
          .micro_batch_rows = micro_batch_rows,
          .accumulation = input.accumulation,
          .largest_micro_batch = choice.largest_micro_batch,
          .needed = needs_of(input, size_of(input)).device.total()};
}

std::int64_t bytes_moved(const Choice& choice) {
  return (choice.file_traffic.read + choice.file_traffic.written).count();
}

// Of what Zeroth can do, the least first.
std::vector<const Choice*> built_choices(const Plan& plan, bool in_files) {
  std::vector<const Choice*> choices;
  for (const Choice& choice : plan.table) {
    if (choice.status == Status::kBuilt && choice.offload.uses_files() == in_files) {
      choices.push_back(&choice);
    }
  }
  std::stable_sort(choices.begin(), choices.end(), [](const Choice* a, const Choice* b) {
    return bytes_moved(*a) < bytes_moved(*b);
  });
  return choices;
}

// The largest part of the micro-batch that any of the choices holds.
std::optional<Proposal> first_that_fits(const Plan& plan,
                                        const std::vector<const Choice*>& choices) {
  std::int64_t most = 0;
  for (const Choice* choice : choices) {
    most = std::max(most, choice->largest_micro_batch);
  }
  const std::int64_t rows = plan.input.micro_batch_rows * plan.input.accumulation;
  for (std::int64_t micro = std::min(most, plan.input.micro_batch_rows); micro > 0; --micro) {
    if (rows % micro != 0) {
      continue;
    }
    const auto found = std::find_if(choices.begin(), choices.end(), [&](const Choice* choice) {
      return choice->largest_micro_batch >= micro;
    });
    return propose(plan, **found, micro);
  }
  return std::nullopt;
}

}  // namespace

std::optional<Proposal> least_that_fits(const Plan& plan) {
  const auto in_memory = first_that_fits(plan, built_choices(plan, false));
  return in_memory ? in_memory : first_that_fits(plan, built_choices(plan, true));
}

Bytes least_needed(const Plan& plan) {
  std::optional<Bytes> least;
  for (const Choice& choice : plan.table) {
    if (choice.status == Status::kBuilt) {
      const Bytes needed = propose(plan, choice, 1).needed;
      least = least ? std::min(*least, needed) : needed;
    }
  }
  return *least;  // stage 0 is always there
}

}  // namespace zeroth::plan
