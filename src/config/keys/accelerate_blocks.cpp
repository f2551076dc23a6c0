#include "config/keys/forms.h"

// The blocks of an Accelerate YAML that speak of PyTorch's own sharding, parallel axes, 8-bit
// products and its compiler.
namespace zeroth::config {
namespace {

constexpr auto kStage3 = "write deepspeed_config: {zero_stage: 3}, which shards the same";
constexpr auto kStage2 = "write deepspeed_config: {zero_stage: 2}, which shards the same";
constexpr auto kOneHost =
    "write deepspeed_config: {zero_stage: 3}: hosts are not grouped, all ranks share the shards";

// A field whose last word is also an option of `accelerate launch`.
Declaration field(Declaration key) {
  key.accelerate = {key.name};
  key.aliases = {key.name.substr(key.name.rfind('.') + 1)};
  return key;
}

// One whose last word would say too little alone.
Declaration inner(Declaration key) {
  key.accelerate = {key.name};
  return key;
}

Declaration sharding_strategy() {
  Declaration key = field(refused("fsdp_config.fsdp_sharding_strategy",
                                  one_of({"NO_SHARD"}, "NO_SHARD"),
                                  "what PyTorch's FSDP shards",
                                  kStage3));
  key.accelerate.push_back("fsdp_config.sharding_strategy");
  key.synonyms = {{"1", "full_shard"},
                  {"2", "shard_grad_op"},
                  {"3", "NO_SHARD"},
                  {"4", "hybrid_shard"},
                  {"5", "hybrid_shard_zero2"}};
  key.refused_choices = {{"full_shard", kStage3},
                         {"shard_grad_op", kStage2},
                         {"hybrid_shard", kOneHost},
                         {"hybrid_shard_zero2", kStage2}};
  return key;
}

// FSDP 2 says it by what happens after a forward; files of people also carry the older word there.
Declaration reshard_after_forward() {
  Declaration key = field(refused("fsdp_config.fsdp_reshard_after_forward",
                                  one_of({"NO_SHARD"}),
                                  "whether PyTorch's FSDP releases weights after a forward",
                                  kStage3));
  key.synonyms = {{"true", "full_shard"}, {"false", "shard_grad_op"}};
  key.refused_choices = {{"full_shard", kStage3},
                         {"shard_grad_op", kStage2},
                         {"hybrid_shard", kOneHost},
                         {"hybrid_shard_zero2", kStage2}};
  return key;
}

Declaration backward_prefetch() {
  Declaration key = field(harmless("fsdp_config.fsdp_backward_prefetch",
                                   one_of({"BACKWARD_PRE", "BACKWARD_POST", "NO_PREFETCH"}),
                                   "when FSDP fetches the next weights",
                                   "stage3_prefetch_bucket_size says what is fetched ahead"));
  key.old_names = {"fsdp_backward_prefetch_policy", "fsdp_config.fsdp_backward_prefetch_policy"};
  key.aliases.emplace_back("fsdp_backward_prefetch_policy");
  key.accelerate.emplace_back("fsdp_config.fsdp_backward_prefetch_policy");
  key.synonyms = {{"1", "BACKWARD_PRE"}, {"2", "BACKWARD_POST"}};
  return key;
}

Declarations fsdp_keys() {
  Declaration smallest = at({"fsdp_config.fsdp_min_num_params", "fsdp_config.min_num_params"},
                            harmless("fsdp_min_num_params",
                                     whole(kNotNegative, nullptr, "parameters"),
                                     "smallest module that FSDP shards by itself",
                                     "units are the model's blocks, however small"));
  Declaration offload = field(refused("fsdp_config.fsdp_offload_params",
                                      flag(false),
                                      "keep FSDP's weights in host memory",
                                      "write deepspeed_config: {zero_stage: 3, "
                                      "offload_param_device: cpu, offload_optimizer_device: cpu}"));
  offload.accelerate.emplace_back("fsdp_config.offload_params");
  return {
      sharding_strategy(),
      reshard_after_forward(),
      std::move(offload),
      std::move(smallest),
      backward_prefetch(),
      field(harmless("fsdp_config.fsdp_version",
                     whole({.min = 1, .max = 2}, 1),
                     "which of PyTorch's two FSDPs",
                     "neither of the two FSDPs is used")),
      field(harmless("fsdp_config.fsdp_auto_wrap_policy",
                     one_of({"TRANSFORMER_BASED_WRAP", "SIZE_BASED_WRAP", "NO_WRAP"}),
                     "how FSDP finds its units",
                     "units are the model's own: the embedding, each block, the head")),
      at({"fsdp_config.fsdp_transformer_layer_cls_to_wrap"},
         harmless("fsdp_transformer_layer_cls_to_wrap",
                  names(),
                  "classes that FSDP makes its units of",
                  "units are not found by the names of Python classes")),
      field(harmless("fsdp_config.fsdp_forward_prefetch",
                     flag(false),
                     "fetch the next weights during a forward",
                     "the next unit is always fetched during a forward")),
      field(harmless("fsdp_config.fsdp_state_dict_type",
                     one_of({"FULL_STATE_DICT", "SHARDED_STATE_DICT", "LOCAL_STATE_DICT"}),
                     "how FSDP saves",
                     "results are complete folders under every stage")),
      field(harmless("fsdp_config.fsdp_use_orig_params",
                     flag(true),
                     "keep the parameters' own names and shapes",
                     "parameters always keep their names and shapes")),
      field(harmless("fsdp_config.fsdp_cpu_ram_efficient_loading",
                     flag(true),
                     "let one rank load and send the weights",
                     "weights are mapped once for all ranks of a host")),
      field(harmless("fsdp_config.fsdp_sync_module_states",
                     flag(true),
                     "send rank 0's weights to all",
                     "all ranks read the same files, so they start with the same weights")),
      off_too({"None", ""},
              field(refused("fsdp_config.fsdp_ignored_modules",
                            text(),
                            "modules that FSDP leaves whole",
                            "every trainable parameter is sharded alike: leave it out"))),
  };
}

Declarations parallelism_keys() {
  const Form size = whole(kAtLeastOne, 1, "ranks");
  const std::string axis = "parallelism_config.parallelism_config_";
  return {
      field(refused(axis + "dp_replicate_size",
                    size,
                    "groups of ranks that hold the same shards",
                    "all ranks are one group: write num_processes and zero_stage")),
      field(refused(axis + "dp_shard_size",
                    size,
                    "ranks that hold one shard each",
                    "write num_processes and deepspeed_config: {zero_stage: 3}")),
      field(refused(axis + "cp_size",
                    size,
                    "ranks that share one row",
                    "rows are not cut along their length: use a smaller cutoff_len")),
      field(harmless(axis + "cp_comm_strategy",
                     one_of({"allgather", "alltoall"}),
                     "how pieces of a row are sent",
                     "cp_size above 1 is refused, so no row is in pieces")),
      field(harmless(axis + "sp_backend",
                     one_of({"deepspeed"}, "deepspeed"),
                     "who divides rows among ranks",
                     "who divides rows changes no number, only how many ranks share one")),
      field(harmless(axis + "sp_seq_length",
                     whole(kAtLeastOne, nullptr, "tokens"),
                     "length of the rows that are divided",
                     "rows are measured as they are read")),
      field(harmless(axis + "sp_seq_length_is_variable",
                     flag(true),
                     "whether divided rows differ in length",
                     "rows may always differ in length")),
      field(harmless(axis + "sp_attn_implementation",
                     one_of({"flash_attention_2", "flash_attention_3", "sdpa", "eager"}),
                     "attention over divided rows",
                     "there is one attention, whoever holds the rows")),
  };
}

Declarations eight_bit_keys() {
  const std::string config = "fp8_config.";
  return {
      inner(harmless(config + "backend",
                     one_of({"TE", "MSAMP", "AO"}),
                     "library for 8-bit products",
                     "mixed_precision fp8 is refused, so no library is asked")),
      inner(harmless(config + "fp8_format",
                     one_of({"E4M3", "E5M2", "HYBRID"}),
                     "8-bit format",
                     "mixed_precision fp8 is refused, so nothing has 8 bits")),
      inner(harmless(config + "amax_history_len",
                     whole(kAtLeastOne, 1024),
                     "how far back the largest values are kept",
                     "mixed_precision fp8 is refused, so no largest values are kept")),
      inner(harmless(config + "amax_compute_algo",
                     one_of({"max", "most_recent"}, "most_recent"),
                     "which of them gives the scale",
                     "mixed_precision fp8 is refused, so no scale is chosen")),
      inner(harmless(config + "interval",
                     whole(kAtLeastOne, 1, "updates"),
                     "updates between scales",
                     "mixed_precision fp8 is refused, so no scale grows old")),
      inner(harmless(config + "margin",
                     whole(kNotNegative, 0),
                     "reserve in the scale",
                     "mixed_precision fp8 is refused, so no scale needs a reserve")),
      inner(harmless(config + "override_linear_precision",
                     anything(),
                     "products that stay in more bits",
                     "mixed_precision fp8 is refused, so all products do")),
      inner(harmless(config + "use_autocast_during_eval",
                     flag(false),
                     "evaluate in 8 bits",
                     "mixed_precision fp8 is refused, evaluation included")),
      inner(harmless(config + "opt_level",
                     one_of({"O1", "O2"}, "O2"),
                     "what MS-AMP sends in 8 bits",
                     "mixed_precision fp8 is refused, so nothing is sent in 8 bits")),
      inner(harmless(config + "enable_fsdp_float8_all_gather",
                     flag(true),
                     "gather weights in 8 bits",
                     "mixed_precision fp8 is refused, so weights are gathered as they are")),
      inner(harmless(config + "pad_inner_dim",
                     flag(true),
                     "pad products to what 8-bit units take",
                     "mixed_precision fp8 is refused, so nothing is padded for it")),
  };
}

Declarations compiler_keys() {
  const std::string config = "dynamo_config.";
  Declaration backend = field(harmless(config + "dynamo_backend",
                                       one_of({"NO",
                                               "EAGER",
                                               "AOT_EAGER",
                                               "INDUCTOR",
                                               "AOT_TS_NVFUSER",
                                               "NVPRIMS_NVFUSER",
                                               "CUDAGRAPHS",
                                               "OFI",
                                               "FX2TRT",
                                               "ONNXRT",
                                               "TENSORRT",
                                               "AOT_TORCHXLA_TRACE_ONCE",
                                               "TORCHXLA_TRACE_ONCE",
                                               "IPEX",
                                               "TVM",
                                               "HPU_BACKEND"},
                                              "NO"),
                                       "compiler for the model's Python code",
                                       "there is no Python code to compile"));
  backend.accelerate.emplace_back("dynamo_backend");
  backend.synonyms = {{"false", "NO"}};
  return {
      std::move(backend),
      field(harmless(config + "dynamo_mode",
                     one_of({"default", "reduce-overhead", "max-autotune"}, "default"),
                     "how hard to compile",
                     "the engine is compiled before it is installed")),
      field(harmless(config + "dynamo_use_fullgraph",
                     flag(false),
                     "compile the model in one piece",
                     "no graph of the model is captured")),
      field(harmless(config + "dynamo_use_dynamic",
                     flag(false),
                     "compile for all shapes",
                     "kernels take all shapes")),
      field(harmless(config + "dynamo_use_regional_compilation",
                     flag(false),
                     "compile one block for all",
                     "all blocks run the same code")),
  };
}

}  // namespace

Declarations accelerate_block_keys() {
  return joined({in_section("Accelerate: fsdp_config", fsdp_keys()),
                 in_section("Accelerate: parallelism_config", parallelism_keys()),
                 in_section("Accelerate: fp8_config", eight_bit_keys()),
                 in_section("Accelerate: dynamo_config", compiler_keys())});
}

}  // namespace zeroth::config
