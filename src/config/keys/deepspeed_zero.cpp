#include "config/keys/deepspeed.h"

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kNoZenFlow =
    "ZenFlow updates most weights with gradients of earlier steps; leave zenflow out: every update "
    "here uses its own gradients";
constexpr auto kUnquantisedSums = "gradients are summed in fp32 here";

Declarations gradient_keys() {
  return {
      harmless(key("zero_optimization.contiguous_gradients",
                   flag(true),
                   "copy gradients into one buffer as they come"),
               "a unit's gradients always lie in one flat buffer"),
      harmless(key("zero_optimization.reduce_scatter",
                   flag(true),
                   "sum each gradient on its owner only"),
               "each rank always sums its own shard, so every sum is made once"),
      harmless(key("zero_optimization.use_multi_rank_bucket_allreduce",
                   flag(true),
                   "sum a bucket that several ranks own in one collective"),
               "a bucket's sums go straight to their owners, however many there are"),
      harmless(key("zero_optimization.overlap_comm",
                   flag(nullptr),
                   "sum gradients while backward goes on"),
               "gradients are added in rank order, overlapped or not: the same bits"),
      harmless(key("zero_optimization.round_robin_gradients",
                   flag(false),
                   "deal gradients to ranks in turn, so that copies to the host spread"),
               "a unit is cut at the same borders in every stage, and no gradient is copied to "
               "another device"),
      harmless(key("zero_optimization.ignore_unused_parameters",
                   flag(true),
                   "go on when a parameter got no gradient"),
               "every trainable parameter of the models here gets a gradient"),
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
      harmless(key("zero_optimization.allgather_bucket_size",
                   whole(kNotNegative, 500000000, "elements"),
                   "updated weights of one gather"),
               "updated weights are gathered unit by unit, straight into place: no bucket is held"),
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

Declarations gather_keys() {
  const auto elements = [](Json by_default) {
    return whole(kNotNegative, std::move(by_default), "elements");
  };
  return {
      or_auto(stage_3_key("prefetch_bucket_size",
                          elements(50000000),
                          "parameters gathered ahead of their use",
                          "the next unit is gathered ahead, whatever its size")),
      or_auto(stage_3_key("param_persistence_threshold",
                          elements(100000),
                          "parameters up to this size stay gathered",
                          "small parameters travel with their unit: none stays gathered")),
      stage_3_key("model_persistence_threshold",
                  elements(nullptr),
                  "parameters that may stay gathered, in all",
                  "no parameter stays gathered, so their sum is nothing"),
      or_auto(stage_3_key("max_live_parameters",
                          elements(1000000000),
                          "gathered parameters at one time",
                          "only the unit in use and the next one are ever gathered")),
      stage_3_key("max_reuse_distance",
                  elements(1000000000),
                  "parameters used again within this many are kept",
                  "a unit is released right after its use"),
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
      harmless(key("zero_optimization.sub_group_size",
                   elements(1000000000),
                   "parameters of one piece of the optimizer's work"),
               "a shard in memory is updated where it lies: no piece of it is copied",
               only_with_stage_3()),
  };
}

// Also under its older name, and in an Accelerate YAML.
Declaration gather_on_save() {
  Declaration setting = key("zero_optimization.stage3_gather_16bit_weights_on_model_save",
                            flag(false),
                            "write whole weights, not shards");
  setting = once(also(std::move(setting), {"zero_optimization.gather_16bit_weights_on_model_save"}),
                 {"zero_optimization.stage3_gather_fp16_weights_on_model_save"});
  setting = in_accelerate(or_auto(std::move(setting)), "deepspeed_config.zero3_save_16bit_model");
  return harmless(std::move(setting),
                  "results are complete under every stage, with it or without",
                  only_with_stage_3("below it every rank has the whole weights"));
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
              "gradients are summed in fp32; leave it out"),
      detail(key("zero_optimization.zeropp_loco_param.err_beta",
                 number(kShare, 0.8),
                 "how slowly the rounding error of quantised gradients is forgotten"),
             kUnquantisedSums),
      detail(key("zero_optimization.zeropp_loco_param.reset_T",
                 whole(kAtLeastOne, 1024, "updates"),
                 "when the rounding error of quantised gradients starts afresh"),
             kUnquantisedSums),
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
  return joined({gradient_keys(),
                 weight_keys(),
                 gather_keys(),
                 quantised_keys(),
                 zenflow_keys(),
                 {gather_on_save()}});
}

}  // namespace zeroth::config::deepspeed
