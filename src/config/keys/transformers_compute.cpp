#include "config/field.h"
#include "config/keys/forms.h"

// Transformers' options of how an update is computed, on what, and from which rows.
namespace zeroth::config {
namespace {

// random and sequential are what disable_shuffling says; group_by_length has a key of its own.
std::vector<Part> sampling_parts(const Json& value) {
  if (value == "group_by_length") {
    return {{"group_by_length", true}};
  }
  return {{"disable_shuffling", value == "sequential"}};
}

Declarations precision_keys() {
  const std::vector<std::string> backends{"auto", "cuda_amp", "apex", "cpu_amp"};
  return {
      refused("bf16_full_eval",
              flag(false),
              "evaluate with bf16 weights",
              "evaluation computes as training does: use --bf16"),
      refused("fp16_full_eval",
              flag(false),
              "evaluate with fp16 weights",
              "evaluation computes as training does: use --fp16"),
      harmless("tf32",
               flag(nullptr),
               "let GPUs round fp32 products to 19 bits",
               "fp32 products are computed in fp32 here"),
      harmless("fp16_opt_level",
               one_of({"O0", "O1", "O2", "O3"}, "O1"),
               "Apex's level of mixed precision",
               "Apex is not used"),
      harmless("half_precision_backend",
               one_of(backends, "auto"),
               "who casts for mixed precision",
               "the engine casts by itself"),
      replaced_by("half_precision_backend",
                  harmless("fp16_backend",
                           one_of(backends, "auto"),
                           "half_precision_backend, in older releases",
                           "no other library casts for the engine")),
  };
}

Declaration recomputing() {
  return {.name = "gradient_checkpointing",
          .accelerate = {"fsdp_config.fsdp_activation_checkpointing"},
          .type = ValueType::kBoolean,
          .default_value = false,
          .commands = kUpdates,
          .help =
              "keep each unit's input alone and compute its activations again in the backward "
              "pass: less memory, a third more time, the same bits",
          .field = field(&RunConfig::finetune, &FinetuneSettings::gradient_checkpointing)};
}

Declarations memory_keys() {
  return {
      recomputing(),
      harmless("gradient_checkpointing_kwargs",
               block(),
               "how PyTorch recomputes: use_reentrant and its like",
               "recomputation is by unit and outside of PyTorch's graph: there is one way of it"),
      harmless("torch_empty_cache_steps",
               whole(kAtLeastOne, nullptr, "updates"),
               "how often to give GPU memory back",
               "memory is reused from update to update, none is hoarded"),
      refused("auto_find_batch_size",
              flag(false),
              "halve the batch until it fits",
              "the batch is what you say it is: write --per_device_train_batch_size and "
              "--gradient_accumulation_steps"),
      harmless("use_cache",
               flag(false),
               "keep keys and values while training",
               "training reads each row once, generation always keeps them"),
  };
}

Declarations speed_keys() {
  return {
      harmless("torch_compile",
               flag(false),
               "compile the model's Python code",
               "the engine is compiled already"),
      harmless("torch_compile_backend",
               text(),
               "who compiles the model's Python code",
               "no Python code is left to compile"),
      harmless("torch_compile_mode",
               text(),
               "how hard to compile the model's Python code",
               "the engine was compiled for speed"),
      replaced_by("torch_compile_backend",
                  harmless("torchdynamo",
                           text(),
                           "torch_compile_backend, in older releases",
                           "no Python code is traced")),
      harmless("use_liger_kernel",
               flag(false),
               "use Liger's GPU kernels",
               "the engine has kernels of its own"),
      harmless("liger_kernel_config",
               block(),
               "which of Liger's GPU kernels to use",
               "none of Liger's kernels is used"),
      harmless("use_ipex",
               flag(false),
               "use Intel's extension for PyTorch",
               "oneDNN is used without the extension"),
      harmless("jit_mode_eval",
               flag(false),
               "trace the model for evaluation",
               "evaluation runs the same compiled code"),
  };
}

Declarations loss_keys() {
  return {
      refused("label_smoothing_factor",
              number(kShare, 0.0),
              "share of each target given to all other tokens",
              "the loss is the plain cross-entropy of the target tokens: leave it out"),
      off_too({0},
              refused("neftune_noise_alpha",
                      number(kNotNegative),
                      "noise on the embeddings while training",
                      "no noise is added to embeddings: leave it out, or use --lora_dropout")),
      harmless("average_tokens_across_devices",
               flag(true),
               "weight the loss by the tokens of all ranks",
               "the loss is always weighted by the target tokens of the global batch"),
      refused("optim_target_modules",
              anything(),
              "modules for GaLore and APOLLO",
              "neither optimizer is there: use --lora_target with --finetuning_type lora"),
  };
}

Declarations seed_keys() {
  return {
      refused("data_seed",
              whole(kNotNegative),
              "a seed for the order of the rows alone",
              "one seed starts all chance: use --seed"),
      harmless("full_determinism",
               flag(false),
               "the same bits each time",
               "the same seed, threads and processor always give the same bits"),
  };
}

Declaration drop_last() {
  Declaration key =
      refused("dataloader_drop_last",
              flag(false),
              "leave out the last, smaller batch of an epoch",
              "the last rows of an epoch are trained too, weighted by their tokens: leave it out");
  key.deepspeed = {"dataloader_drop_last"};
  return key;
}

Declarations loader_keys() {
  Declaration sampling{.name = "train_sampling_strategy",
                       .type = ValueType::kChoice,
                       .choices = {"random", "sequential", "group_by_length"},
                       .default_value = "random",
                       .commands = kTrainOnly,
                       .help = "order of the rows: sequential is --disable_shuffling",
                       .parts = sampling_parts};
  return {
      std::move(sampling),
      planned("group_by_length",
              flag(false),
              "put rows of like length into one batch",
              "rows are shuffled regardless of their length"),
      harmless("length_column_name",
               text("length"),
               "column that holds the rows' lengths",
               "rows are measured as they are tokenised"),
      drop_last(),
      harmless("dataloader_num_workers",
               whole(kNotNegative, 0, "processes"),
               "processes that prepare batches",
               "batches are made in the training process"),
      harmless("dataloader_pin_memory",
               flag(true),
               "lock batches in memory for the GPU",
               "the CPU reads batches where they lie"),
      harmless("dataloader_persistent_workers",
               flag(false),
               "keep the processes that prepare batches",
               "no process besides the rank prepares batches"),
      harmless("dataloader_prefetch_factor",
               whole(kAtLeastOne, nullptr, "batches"),
               "batches that each process prepares ahead",
               "a batch is ready long before its update"),
      harmless("remove_unused_columns",
               flag(true),
               "drop columns that the model does not take",
               "only the columns that a row's format names are read"),
      refused("split_batches",
              flag(false),
              "cut one batch into pieces for the ranks",
              "--per_device_train_batch_size is rows per rank: divide it yourself, or give "
              "--train_batch_size"),
      harmless("dispatch_batches",
               flag(nullptr),
               "let one rank read for all",
               "every rank reads its own rows"),
      refused(
          "sortish_sampler", flag(false), "sort rows roughly by length", "use --group_by_length"),
      refused("accelerator_config",
              block(),
              "settings of Accelerate's own",
              "write its settings as options, e.g. --gradient_accumulation_steps"),
  };
}

Declarations device_keys() {
  return {
      once_called({"no_cuda"},
                  also_called({"cpu"},
                              at({"use_cpu"},
                                 harmless("use_cpu",
                                          flag(false),
                                          "compute on the CPU",
                                          "this build computes on the CPU")))),
      refused("use_mps_device",
              flag(false),
              "compute on an Apple GPU",
              "there is no such device here: leave it out"),
      refused("tpu_num_cores",
              whole(kAtLeastOne),
              "cores of a TPU",
              "there is no TPU here: use --ranks for the number of processes"),
      refused("tpu_metrics_debug",
              flag(false),
              "print a TPU's counters",
              "there is no TPU here: leave it out"),
      off_too({"none"},
              refused("mp_parameters",
                      anything(""),
                      "SageMaker's model parallelism",
                      "a model is divided by --zero_stage 3")),
      refused("past_index",
              whole({.min = 0, .also = -1}, -1),
              "output that holds state for the next row",
              "rows do not depend on each other: leave it out"),
      harmless("ray_scope",
               text("last"),
               "which trial of a search counts",
               "there is no search over settings"),
  };
}

Declarations distribution_keys() {
  return {
      harmless("local_rank",
               whole({.min = 0, .also = -1}, -1),
               "this process's number on its host",
               "the launcher's variables say which rank this is"),
      harmless("ddp_find_unused_parameters",
               flag(nullptr),
               "look for parameters without a gradient",
               "every trainable parameter is reduced in the same order on every rank"),
      harmless("ddp_bucket_cap_mb",
               whole(kAtLeastOne, nullptr, "MB"),
               "size of DDP's gradient buckets",
               "reduce_bucket_size says how much is reduced at once, and changes no number"),
      harmless("ddp_broadcast_buffers",
               flag(nullptr),
               "send buffers to all ranks before each forward",
               "the models here have no buffers that change"),
      harmless("ddp_backend",
               one_of({"nccl", "gloo", "mpi", "ccl", "xccl", "hccl", "cncl", "mccl"}),
               "library that connects the ranks",
               "ranks of one host share memory, hosts are joined by MPI"),
      replaced_by("ddp_backend",
                  harmless("xpu_backend",
                           one_of({"mpi", "ccl", "gloo"}),
                           "ddp_backend, in older releases",
                           "no library has to be chosen to connect the ranks")),
      harmless("ddp_timeout",
               whole(kAtLeastOne, 1800, "seconds"),
               "how long a rank waits for the others",
               "a living rank is waited for and a dead one ends the run at once; --start_timeout "
               "bounds the start"),
      off_too({false, ""},
              refused("fsdp",
                      anything(),
                      "PyTorch's sharding",
                      "use --zero_stage 3 for full_shard, --zero_stage 2 for shard_grad_op: they "
                      "shard the same")),
      refused("fsdp_config",
              block(),
              "settings of PyTorch's sharding",
              "use --zero_stage 3, which shards the same"),
      off_too({"none", false},
              refused("sharded_ddp",
                      anything(""),
                      "FairScale's sharding",
                      "use --zero_stage 1 for simple, 2 for zero_dp_2, 3 for zero_dp_3")),
      refused("parallelism_config",
              block(),
              "Accelerate's axes of parallelism",
              "ranks are data-parallel: use --zero_stage 3 to divide the model"),
  };
}

}  // namespace

Declarations transformers_compute_keys() {
  return joined({in_section("Precision", precision_keys()),
                 in_section("Memory", memory_keys()),
                 in_section("Speed", speed_keys()),
                 in_section("Loss", loss_keys()),
                 in_section("Chance", seed_keys()),
                 in_section("Reading rows", loader_keys()),
                 in_section("Devices", device_keys()),
                 in_section("Ranks", distribution_keys())});
}

}  // namespace zeroth::config
