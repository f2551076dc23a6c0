#include "config/keys/forms.h"

// Megatron's words, also as accelerate launch and its files say them: each is refused with the word
// to write instead. Its batch sizes are aliases of ours (training.cpp).
namespace zeroth::config {
namespace {

constexpr auto kDivideByZero = "ranks are data-parallel: use --zero_stage 3 to divide the model";

// A field of Accelerate's megatron_lm_config.
Declaration in_file(const std::string& field, Declaration key) {
  key.accelerate = {"megatron_lm_config." + field};
  key.aliases = {field};
  return key;
}

Declarations parallel_keys() {
  const Form ranks = whole(kAtLeastOne, 1, "ranks");
  return {
      in_file("megatron_lm_tp_degree",
              refused("tensor_model_parallel_size",
                      ranks,
                      "Megatron's tensor-parallel ranks",
                      kDivideByZero)),
      in_file(
          "megatron_lm_pp_degree",
          refused(
              "pipeline_model_parallel_size", ranks, "Megatron's pipeline stages", kDivideByZero)),
      refused("context_parallel_size",
              ranks,
              "Megatron's pieces of a row",
              "rows are not cut along their length: use a smaller --cutoff_len"),
      refused("expert_model_parallel_size",
              ranks,
              "Megatron's expert-parallel ranks",
              "models with experts are not supported: leave it out"),
      in_file("megatron_lm_sequence_parallelism",
              refused("sequence_parallel",
                      flag(false),
                      "Megatron's division of norms",
                      "it belongs to tensor parallelism: use --zero_stage 3")),
      in_file("megatron_lm_use_distributed_optimizer",
              refused("use_distributed_optimizer",
                      flag(false),
                      "Megatron's sharded optimizer",
                      "use --zero_stage 1, which shards the optimizer's state")),
  };
}

Declarations batch_words() {
  return {
      off_too({1},
              in_file("megatron_lm_num_micro_batches",
                      refused("num_micro_batches",
                              whole(kAtLeastOne, nullptr, "micro-batches"),
                              "Megatron's micro-batches of one update",
                              "use --gradient_accumulation_steps"))),
      refused("rampup_batch_size",
              anything(),
              "Megatron's growing batch",
              "a batch keeps its size: use --train_batch_size"),
      refused("train_iters",
              whole(kAtLeastOne, nullptr, "updates"),
              "Megatron's number of updates",
              "use --max_steps"),
      refused("train_samples",
              whole(kAtLeastOne, nullptr, "rows"),
              "Megatron's number of rows",
              "use --max_steps, or --num_train_epochs"),
      refused("seq_length",
              whole(kAtLeastOne, nullptr, "tokens"),
              "Megatron's length of rows",
              "use --cutoff_len"),
  };
}

Declarations schedule_words() {
  return {
      refused("lr_decay_style",
              one_of({"constant", "linear", "cosine", "inverse-square-root", "WSD"}),
              "Megatron's schedule",
              "use --lr_scheduler_type"),
      refused("lr_decay_iters",
              whole(kAtLeastOne, nullptr, "updates"),
              "Megatron's end of the schedule",
              "the schedule ends with the run: use --max_steps"),
      refused("lr_warmup_iters",
              whole(kNotNegative, nullptr, "updates"),
              "Megatron's warm-up",
              "use --warmup_steps"),
      refused("lr_warmup_fraction",
              number(kShare),
              "Megatron's warm-up as a share",
              "use --warmup_ratio"),
      off_too({1},
              in_file("megatron_lm_gradient_clipping",
                      refused("clip_grad",
                              number(kNotNegative),
                              "Megatron's largest gradient norm",
                              "use --max_grad_norm"))),
      in_file("megatron_lm_recompute_activations",
              refused("recompute_activations",
                      flag(false),
                      "Megatron's recomputation",
                      "use --gradient_checkpointing")),
  };
}

Declarations interval_keys() {
  return {
      refused("log_interval",
              whole(kAtLeastOne, nullptr, "updates"),
              "Megatron's updates between log lines",
              "use --logging_steps"),
      refused("eval_interval",
              whole(kAtLeastOne, nullptr, "updates"),
              "Megatron's updates between evaluations",
              "use --eval_strategy steps and --eval_steps"),
      refused("eval_iters",
              whole(kNotNegative, nullptr, "batches"),
              "Megatron's batches of an evaluation",
              "all rows set aside are evaluated: use --val_size"),
      refused("save_interval",
              whole(kAtLeastOne, nullptr, "updates"),
              "Megatron's updates between checkpoints",
              "use --save_strategy steps and --save_steps"),
  };
}

}  // namespace

Declarations megatron_keys() {
  return in_section("Megatron's words",
                    joined({parallel_keys(), batch_words(), schedule_words(), interval_keys()}));
}

}  // namespace zeroth::config
