#include "config/keys/deepspeed.h"

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kNoZenFlow =
    "ZenFlow updates most weights with gradients of earlier steps; leave zenflow out: every update "
    "here uses its own gradients";
constexpr auto kUnquantised = "gradients are not quantised here";

Declarations gradient_keys() {
  return {
      harmless(key("zero_optimization.contiguous_gradients",
                   flag(true),
                   "copy gradients into one buffer as they come"),
               "a unit's gradients always lie in one flat buffer"),
      harmless(key("zero_optimization.use_multi_rank_bucket_allreduce",
                   flag(true),
                   "sum a bucket that several ranks own in one collective"),
               "a bucket is one collective, however many ranks own a part of it"),
      harmless(key("zero_optimization.round_robin_gradients",
                   flag(false),
                   "deal gradients to ranks in turn, so that copies to the host spread"),
               "a unit is cut at the same borders in every stage, and no gradient is copied to "
               "another device"),
      refused(key("zero_optimization.legacy_stage1", flag(false), "the first form of stage 1"),
              {false},
              "stage 1 has one form here; leave legacy_stage1 out"),
      harmless(key("zero_optimization.grad_hooks",
                   flag(nullptr),
                   "in DeepSpeed's documents only: reduce gradients in hooks"),
               "gradients are taken unit by unit, without hooks"),
  };
}

Declarations weight_keys() {
  return {
      harmless(key("zero_optimization.allgather_partitions",
                   flag(true),
                   "gather updated weights instead of broadcasting them"),
               "updated weights are always gathered; DeepSpeed does not read this key either"),
      refused(key("zero_optimization.load_from_fp32_weights",
                  flag(true),
                  "go on from a checkpoint's fp32 weights, not from its 16-bit copies"),
              {true},
              "resuming from rounded weights changes the run; leave it out or write true"),
      harmless(key("zero_optimization.elastic_checkpoint",
                   flag(false),
                   "a checkpoint layout for other numbers of ranks"),
               "it chooses among layouts of DeepSpeed's checkpoints, and none of those is written"),
      harmless(key("zero_optimization.memory_efficient_linear",
                   flag(true),
                   "replace the linear layer's function while the model is built"),
               "there is no Python linear layer to replace"),
      harmless(key("zero_optimization.override_module_apply",
                   flag(true),
                   "patch Module.apply so that it gathers weights first"),
               "there is no Module.apply to patch"),
      harmless(key("zero_optimization.pipeline_loading_checkpoint",
                   flag(false),
                   "load a checkpoint rank by rank"),
               "weights are mapped from their files, so no order of loading saves memory"),
      harmless(key("zero_optimization.log_trace_cache_warnings",
                   flag(false),
                   "report when the recorded order of modules is thrown away"),
               "units are walked in a fixed order: none is recorded that could be thrown away"),
      harmless(key("zero_optimization.enable_sanity_checks",
                   flag(false),
                   "check that ranks gather the same parameters"),
               "every collective is checked between ranks, always"),
      harmless(key("zero_optimization.save_muon_momentum_buffer_in_memory",
                   flag(false),
                   "keep Muon's momentum off the disk"),
               "Muon is refused, so it has no momentum to keep"),
      harmless(key("zero_optimization.leaf_module.classes",
                   names(),
                   "classes whose modules are gathered as a whole"),
               "units decide what is gathered together, not classes"),
      harmless(key("zero_optimization.leaf_module.names",
                   names(),
                   "modules that are gathered as a whole"),
               "a module's weights come with its unit, named here or not"),
      harmless(key("zero_optimization.leaf_module.name_suffixes",
                   names(),
                   "ends of names of modules that are gathered as a whole"),
               "a unit is one gather, whatever its modules' names end with"),
  };
}

// Each is known with and without "stage3_", as in DeepSpeed.
Declaration stage_3_key(const std::string& word, Form form, std::string help, std::string reason) {
  return harmless(also(key("zero_optimization.stage3_" + word, std::move(form), std::move(help)),
                       {"zero_optimization." + word}),
                  std::move(reason),
                  only_with_stage_3());
}

std::optional<std::string> only_with_persistent_units(const Values& values) {
  if (const auto why = only_with_stage_3()(values)) {
    return why;
  }
  return values.is("zero_optimization.stage3_param_persistence_threshold", 0)
             ? std::optional<std::string>(
                   "stage3_param_persistence_threshold is 0: nothing stays gathered")
             : std::nullopt;
}

Declarations gather_keys() {
  return {
      planned(
          also(key("zero_optimization.stage3_model_persistence_threshold",
                   whole(kNotNegative, nullptr, "elements"),
                   "parameters that may stay gathered, in all"),
               {"zero_optimization.model_persistence_threshold"}),
          {},
          "all units under stage3_param_persistence_threshold stay gathered, whatever their sum",
          only_with_persistent_units),
      stage_3_key("max_reuse_distance",
                  whole(kNotNegative, 1000000000, "elements"),
                  "parameters used again within this many are kept",
                  "stage3_param_persistence_threshold alone says which units are kept after use"),
      stage_3_key("module_granularity_threshold",
                  whole(kNotNegative, 0),
                  "modules finer than this are gathered with their parent",
                  "fine modules come with their unit already"),
      stage_3_key("use_all_reduce_for_fetch_params",
                  flag(false),
                  "gather by adding buffers that are zero elsewhere",
                  "shards are copied into place, which gives the bits that adding zeros gives"),
      stage_3_key("allgather_sequential",
                  flag(false),
                  "gather parameter by parameter",
                  "a unit is flat, so its parameters are one gather without a copy"),
  };
}

Declarations quantised_keys() {
  return {
      refused(key("zero_optimization.zero_hpz_partition_size",
                  whole(kNotNegative, 1, "ranks"),
                  "ranks that keep a second, nearer copy of the shards"),
              {0, 1},
              "no second copy is kept: ranks of one host share each gathered unit; leave it at 1"),
      refused(key("zero_optimization.zero_quantized_weights",
                  flag(false),
                  "round weights to 8 bits on their way"),
              {false},
              "rounding on the way changes the weights that compute; leave it out"),
      refused(key("zero_optimization.zero_quantized_nontrainable_weights",
                  flag(false),
                  "keep frozen weights in 8 bits"),
              {false},
              "frozen weights are used in the type they compute in; leave it out"),
      refused(key("zero_optimization.zero_quantized_gradients",
                  flag(false),
                  "round gradients to 4 and 8 bits on their way"),
              {false},
              "gradients travel in communication_data_type; leave it out"),
      detail(key("zero_optimization.zeropp_loco_param.err_beta",
                 number(kShare, 0.8),
                 "how slowly the rounding error of quantised gradients is forgotten"),
             kUnquantised),
      detail(key("zero_optimization.zeropp_loco_param.reset_T",
                 whole(kAtLeastOne, 1024, "updates"),
                 "when the rounding error of quantised gradients starts afresh"),
             kUnquantised),
      refused(key("zero_optimization.mics_shard_size",
                  whole(Range{.min = 1, .also = -1}, -1, "ranks"),
                  "ranks that share one copy of the parameters; -1: all"),
              {-1},
              "parameters are sharded over all ranks; leave it at -1"),
      detail(key("zero_optimization.mics_hierarchical_params_gather",
                 flag(false),
                 "gather inside a host first, within a MiCS group"),
             "there are no MiCS groups here"),
  };
}

Declarations zenflow_keys() {
  return {
      refused(key("zero_optimization.zenflow.topk_ratio",
                  number(kShare, 0.1),
                  "share of gradients that are applied at once"),
              {},
              kNoZenFlow),
      refused(key("zero_optimization.zenflow.select_strategy",
                  one_of({"auto", "step", "epoch"}, "auto"),
                  "when the gradients applied at once are chosen anew"),
              {},
              kNoZenFlow),
      refused(or_auto(key("zero_optimization.zenflow.select_interval",
                          whole(kAtLeastOne),
                          "steps or epochs between two choices")),
              {},
              kNoZenFlow),
      refused(or_auto(key("zero_optimization.zenflow.update_interval",
                          whole(kAtLeastOne, nullptr, "updates"),
                          "updates between two uses of the other gradients")),
              {},
              kNoZenFlow),
      refused(key("zero_optimization.zenflow.overlap_step",
                  flag(false),
                  "apply the other gradients while the next step computes"),
              {},
              kNoZenFlow),
      refused(key("zero_optimization.zenflow.offload",
                  flag(false),
                  "keep the chosen gradients' optimizer state on the host"),
              {},
              kNoZenFlow),
      refused(key("zero_optimization.zenflow.auto_ratio",
                  number(kShare, 0.99),
                  "share of the gradient norm that the chosen ones must hold"),
              {},
              kNoZenFlow),
      refused(key("zero_optimization.zenflow.full_warm_up_rounds",
                  whole(kNotNegative, 0, "updates"),
                  "first updates that use all gradients"),
              {},
              kNoZenFlow),
      refused(key("zero_optimization.zenflow.pt_reserved_cores_perc",
                  number(kShare, 0.5),
                  "share of cores kept from the overlapped step"),
              {},
              kNoZenFlow),
  };
}

}  // namespace

Declarations zero_keys() {
  return joined({gradient_keys(), weight_keys(), gather_keys(), quantised_keys(), zenflow_keys()});
}

}  // namespace zeroth::config::deepspeed
