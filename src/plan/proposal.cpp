#include "plan/proposal.h"

#include <algorithm>

#include "plan/byte_size.h"
#include <fmt/format.h>

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
  const std::int64_t rows = plan.input.micro_batch_rows * plan.input.accumulation;
  return {.stage = choice.stage,
          .micro_batch_rows = micro_batch_rows,
          .accumulation = rows / micro_batch_rows,
          .largest_micro_batch = choice.largest_micro_batch,
          .needed = needs_of(input, size_of(input)).device.total()};
}

std::string stage_reason(int stage) {
  switch (stage) {
    case 0:
      return "Everything whole on every rank fits: the fewest bytes travel.";
    case 1:
      return "Master weights and moments in shards: stage 0 does not fit.";
    case 2:
      return "Gradients in shards too, which are then reduced at every micro-step: stage 1 does "
             "not fit.";
    default:
      return "Weights in shards too, gathered for each use: stage 2 does not fit.";
  }
}

std::string micro_batch_reason(const Plan& plan, const Proposal& proposal) {
  const std::string largest =
      fmt::format("At most {} fit at this stage.", proposal.largest_micro_batch);
  return proposal.micro_batch_rows == plan.input.micro_batch_rows
             ? fmt::format("Rows of one forward on one rank, as asked. {}", largest)
             : fmt::format("Rows of one forward on one rank: {}, as asked, fit at no stage. {}",
                           plan.input.micro_batch_rows,
                           largest);
}

std::string type_lines(const PlanInput& input) {
  if (input.compute_type == "fp32") {
    return "  // fp32, as asked. true would halve weights and activations in memory.\n"
           "  \"bf16\": {\"enabled\": false},\n";
  }
  return fmt::format(
      "  // {} weights and activations; master weights and sums stay in fp32.\n"
      "  \"{}\": {{\"enabled\": true}},\n",
      input.compute_type,
      input.compute_type);
}

std::string clipping_lines(const config::RunConfig& config) {
  return fmt::format(
      "  // The gradient's norm is clipped to this; 0: no clipping.\n"
      "  \"gradient_clipping\": {}",
      config.optimizer.max_grad_norm);
}

std::string zero_lines(const Proposal& proposal, const config::RunConfig& config) {
  return fmt::format(
      ",\n  \"zero_optimization\": {{\n"
      "    // {}\n"
      "    \"stage\": {},\n"
      "    // Gradients of one reduction; no bucket is held, so it takes no memory.\n"
      "    \"reduce_bucket_size\": {}\n"
      "  }}",
      stage_reason(proposal.stage),
      proposal.stage,
      config.zero.reduce_bucket_elements);
}

std::string head_lines(const Plan& plan, const Proposal& proposal, const std::string& file) {
  return fmt::format(
      "// Written by zeroth plan: {} parameters, {} of them trained, on {} ranks with {} each.\n"
      "// A rank needs {} at the most, with rows of {} tokens.\n"
      "// Check it: zeroth check --deepspeed {} --world_size {}\n",
      plan.parameters,
      plan.trainable,
      plan.input.ranks,
      byte_text(plan.budget.device),
      byte_text(proposal.needed),
      plan.input.row_tokens,
      file,
      plan.input.ranks);
}

std::string batch_lines(const Plan& plan, const Proposal& proposal) {
  return fmt::format(
      "  // Rows of one update, as asked: {} x {} x {} ranks. On another number of ranks the "
      "three\n"
      "  // no longer fit, and zeroth says so.\n"
      "  \"train_batch_size\": {},\n"
      "  // {}\n"
      "  \"train_micro_batch_size_per_gpu\": {},\n"
      "  // Micro-steps of one update: they cost time, and no memory.\n"
      "  \"gradient_accumulation_steps\": {},\n",
      proposal.micro_batch_rows,
      proposal.accumulation,
      plan.input.ranks,
      proposal.micro_batch_rows * proposal.accumulation * plan.input.ranks,
      micro_batch_reason(plan, proposal),
      proposal.micro_batch_rows,
      proposal.accumulation);
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

std::string ds_config(const Plan& plan,
                      const Proposal& proposal,
                      const config::RunConfig& config,
                      const std::string& file) {
  const bool alone = plan.input.ranks == 1;  // nobody to share with: the block would say nothing
  return head_lines(plan, proposal, file) + "{\n" + batch_lines(plan, proposal) +
         type_lines(plan.input) + clipping_lines(config) +
         (alone ? "" : zero_lines(proposal, config)) + "\n}\n";
}

}  // namespace zeroth::plan
