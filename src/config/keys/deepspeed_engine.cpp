#include "config/keys/deepspeed.h"

namespace zeroth::config::deepspeed {
namespace {

Declarations reduction_keys() {
  return {
      refused(key("managed_gradient_accumulation",
                  flag(true),
                  "count micro-steps and update at the end of each window"),
              {true},
              "zeroth train counts micro-steps itself; write gradient_accumulation_steps"),
      harmless(key("prescale_gradients",
                   flag(false),
                   "divide gradients before they are summed, not after"),
               "sums are fp32 and are divided once, by their target tokens: no order of divisions "
               "can overflow"),
      harmless(key("gradient_predivide_factor",
                   number(kPositive, 1.0),
                   "how much of the division comes before the sum"),
               "it shares one division out over two places, and there is one place here"),
      refused(key("gradient_allreduce_op",
                  one_of({"mean", "sum"}, "mean"),
                  "average gradients over ranks, or add them up"),
              {"mean"},
              "a sum makes updates grow with the ranks; leave it out and raise the learning rate"),
      harmless(key("sparse_gradients",
                   flag(false),
                   "send only the rows of an embedding's gradient that are not zero"),
               "the rows that are left out are zero: a dense sum gives the same numbers"),
      harmless(key("disable_allgather", flag(false), "leave weights where they were updated"),
               "DeepSpeed reads it and never uses it: without the gather ranks would drift apart"),
      harmless(key("graph_harvesting", flag(false), "record the optimizer as a CUDA graph"),
               "no CUDA kernels are launched that a graph could hold"),
  };
}

Declarations optimizer_checks() {
  return {
      harmless(key("zero_allow_untested_optimizer",
                   flag(false),
                   "take an optimizer that DeepSpeed has not tried with ZeRO"),
               "every optimizer that is built works with every stage"),
      harmless(key("zero_force_ds_cpu_optimizer",
                   flag(true),
                   "insist on DeepSpeed's own optimizer for offloaded state"),
               "there is one kernel for each optimizer, and it works in host memory"),
  };
}

Declarations printing_keys() {
  return {
      harmless(
          key("steps_per_print", whole(kAtLeastOne, nullptr, "updates"), "updates between lines"),
          "logging_steps sets the progress line, and metrics.jsonl has every update"),
      harmless(key("wall_clock_breakdown", flag(false), "print the time of each phase"),
               "metrics.jsonl has the seconds of every update, and nothing is slowed to take them"),
      harmless(key("memory_breakdown", flag(false), "print memory at each phase"),
               "metrics.jsonl has memory_bytes at every update"),
      harmless(key("dump_state", flag(false), "print the configuration at the start"),
               "the start table always shows what is in force"),
      harmless(key("vocabulary_size",
                   whole(kAtLeastOne, nullptr, "tokens"),
                   "warn when it is no multiple of 8"),
               "the model's config.json says how large its vocabulary is"),
  };
}

std::optional<std::string> only_when_recomputing(const Values& values) {
  if (values.is("gradient_checkpointing", true)) {
    return std::nullopt;
  }
  return "activation_checkpointing is given but gradient checkpointing is off, and the block alone "
         "switches nothing on, in DeepSpeed neither; pass --gradient_checkpointing";
}

Declarations recomputing_keys() {
  return {
      harmless(key("activation_checkpointing.partition_activations",
                   flag(false),
                   "split kept activations over tensor-parallel ranks"),
               "units are recomputed one by one from their inputs, and each rank's are of rows of "
               "its own: no two ranks keep the same",
               only_when_recomputing),
      planned(key("activation_checkpointing.cpu_checkpointing",
                  flag(false),
                  "keep the activations between recomputed parts in host memory"),
              {false},
              "a unit's input stays where it was computed",
              only_when_recomputing),
      harmless(key("activation_checkpointing.contiguous_memory_optimization",
                   flag(false),
                   "keep activations in one buffer, so that memory does not fragment"),
               "what is kept of a unit is one tensor, its input: nothing fragments",
               only_when_recomputing),
      harmless(key("activation_checkpointing.synchronize_checkpoint_boundary",
                   flag(false),
                   "wait for the device at each border of recomputed parts"),
               "the CPU computes in order: there is no stream to wait for",
               only_when_recomputing),
      harmless(
          key("activation_checkpointing.number_checkpoints",
              whole(kAtLeastOne),
              "parts of the model that are recomputed, to size DeepSpeed's one buffer for them"),
          "each unit is one part, and its input is kept without a buffer to size",
          only_when_recomputing),
      harmless(key("activation_checkpointing.profile",
                   flag(false),
                   "report the time of each recomputed part"),
               "metrics.jsonl has the seconds of whole updates: no part is timed apart",
               only_when_recomputing),
  };
}

}  // namespace

Declarations engine_keys() {
  return joined({reduction_keys(), optimizer_checks(), printing_keys(), recomputing_keys()});
}

}  // namespace zeroth::config::deepspeed
