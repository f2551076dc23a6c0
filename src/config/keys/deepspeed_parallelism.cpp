#include "config/keys/deepspeed.h"

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kTensorSize = "tensor_parallel.autotp_size";
constexpr auto kSplitsToCome = "matrices are not split over ranks yet; use --zero_stage 3";
constexpr auto kPipelineToCome = "layers are not dealt out to ranks yet; use --zero_stage 3";
constexpr auto kNoExperts = "no model family here has experts";

std::optional<std::string> only_with_tensor_ranks(const Values& values) {
  if (values.is(kTensorSize, 0) || values.is(kTensorSize, 1)) {
    return "tensor_parallel.autotp_size is 1: no matrix is split";
  }
  return std::nullopt;
}

std::optional<std::string> only_with_stages(const Values& values) {
  if (values.is("pipeline.stages", 1)) {
    return "pipeline.stages is 1: no rank has a part of the layers";
  }
  return std::nullopt;
}

std::optional<std::string> same_as_ranks(const Values& values) {
  if (values["data_parallel_size"] == values["ranks"]) {
    return "the number of ranks says it already";
  }
  return std::nullopt;
}

Declarations tensor_keys() {
  return {
      planned(in_accelerate(
                  in_accelerate(also(key(kTensorSize,
                                         whole(kNotNegative, 1, "ranks"),
                                         "ranks that split each matrix; 0 and 1: none"),
                                     {"tensor_parallel.tp.tp_size", "tensor_parallel.tp_size"}),
                                "parallelism_config.parallelism_config_tp_size"),
                  "tp_config.tp_size"),
              {0, 1},
              kSplitsToCome),
      harmless(spelt(key("tensor_parallel.dtype",
                         one_of({"fp16", "bf16", "fp32"}, "fp16"),
                         "type to convert the model to"),
                     {{"torch.float16", "fp16"},
                      {"torch.bfloat16", "bf16"},
                      {"torch.float32", "fp32"},
                      {"float16", "fp16"},
                      {"bfloat16", "bf16"},
                      {"float32", "fp32"}}),
               "bf16.enabled alone decides in which type the model computes"),
      planned(key("tensor_parallel.tp_overlap_comm",
                  flag(false),
                  "sum parts of a matrix product while the next computes"),
              {false},
              kSplitsToCome,
              only_with_tensor_ranks),
      planned(key("tensor_parallel.tp.tp_grain_size",
                  whole(kAtLeastOne, 1),
                  "a split's width is a multiple of this"),
              {1},
              kSplitsToCome,
              only_with_tensor_ranks),
      harmless(key("tensor_parallel.tp.mpu",
                   anything(),
                   "a Python object that knows the ranks; any value"),
               "a file cannot hold a Python object; ranks are counted by their launcher"),
      harmless(key("tensor_parallel.tp.tp_group",
                   anything(),
                   "a Python object for the ranks that split; any value"),
               "a file cannot hold a process group; the grid is arithmetic here"),
      planned(key("tensor_parallel.partition_config.use_default_specs",
                  flag(true),
                  "add these rules to the model's own"),
              {},
              kSplitsToCome,
              only_with_tensor_ranks),
      planned(key("tensor_parallel.partition_config.layer_specs",
                  anything(),
                  "how matrices are split: a list of blocks"),
              {},
              kSplitsToCome,
              only_with_tensor_ranks),
      planned(key("tensor_parallel.preset_model",
                  text(),
                  "family whose rules say how matrices are split"),
              {},
              kSplitsToCome,
              only_with_tensor_ranks),
      harmless(key("tensor_parallel.keep_module_on_host",
                   flag(false),
                   "leave loaded weights in host memory"),
               "host memory is where the model computes"),
      planned(key("tensor_parallel.injection_policy_tuple",
                  names(),
                  "linears whose products are summed over ranks"),
              {},
              kSplitsToCome,
              only_with_tensor_ranks),
  };
}

Declarations grid_keys() {
  return {
      planned(in_accelerate(key("sequence_parallel_size",
                                whole(kAtLeastOne, 1, "ranks"),
                                "ranks that share the tokens of each row"),
                            "parallelism_config.parallelism_config_sp_size"),
              {1},
              "rows are not shared between ranks yet"),
      refused(key("data_parallel_size",
                  whole(kAtLeastOne, nullptr, "ranks"),
                  "ranks that take rows of their own"),
              {},
              "it follows from the ranks and how they are split; leave it out and write --ranks",
              same_as_ranks),
      harmless(key("use_data_before_expert_parallelism",
                   flag(false),
                   "how ranks are ordered for experts"),
               "there are no experts whose ranks would need an order"),
  };
}

Declarations pipeline_keys() {
  return {
      planned(mistaken(or_auto(key("pipeline.stages",
                                   whole(kAtLeastOne, 1, "ranks"),
                                   "ranks that each have a part of the layers")),
                       {"pipeline_parallel",
                        "pipeline_parallel_size",
                        "pp_size",
                        "num_stages",
                        "pipeline_stages"}),
              {1},
              kPipelineToCome),
      planned(key("pipeline.partition",
                  text("best"),
                  "how layers are dealt out: parameters, uniform, type:REGEX"),
              {},
              kPipelineToCome,
              only_with_stages),
      harmless(key("pipeline.seed_layers", flag(false), "seed every layer by its number"),
               "chance depends on seed, row and place, never on the rank that computes"),
      planned(key("pipeline.activation_checkpoint_interval",
                  whole(kNotNegative, 0, "layers"),
                  "layers between kept activations; 0: keep all"),
              {0},
              kPipelineToCome,
              only_with_stages),
      planned(key("pipeline.pipe_partitioned",
                  flag(true),
                  "split activations between stages over tensor-parallel ranks"),
              {},
              kPipelineToCome,
              only_with_stages),
      planned(key("pipeline.grad_partitioned",
                  flag(true),
                  "split gradients between stages over tensor-parallel ranks"),
              {},
              kPipelineToCome,
              only_with_stages),
      harmless(key("pipeline.use_reentrant", flag(true), "which of PyTorch's ways to recompute"),
               "a unit is differentiated by itself, which is neither of PyTorch's two ways"),
  };
}

Declarations expert_sizes() {
  return {
      refused(key("expert_parallel.enabled", flag(false), "deal experts out to ranks"),
              {false},
              "no model family here has experts; leave expert_parallel out"),
      detail(key("expert_parallel.autoep_size",
                 whole(kAtLeastOne, 1, "ranks"),
                 "ranks that experts are dealt out to"),
             kNoExperts),
      detail(key("expert_parallel.expert_tensor_parallel_size",
                 whole(kAtLeastOne, 1, "ranks"),
                 "ranks that split each expert"),
             kNoExperts),
      detail(
          key("expert_parallel.preset_model", text(), "family whose layers of experts are known"),
          kNoExperts),
      detail(key("expert_parallel.use_grouped_mm",
                 flag(true),
                 "one product for all experts of a rank"),
             kNoExperts),
      detail(key("expert_parallel.load_balance_coeff",
                 number(kNotNegative),
                 "how strongly experts are kept equally busy"),
             kNoExperts),
      detail(
          key("expert_parallel.num_expert_groups", whole(kAtLeastOne), "groups that experts form"),
          kNoExperts),
      detail(key("expert_parallel.num_limited_groups",
                 whole(kAtLeastOne),
                 "groups of experts that a token may reach"),
             kNoExperts),
  };
}

Declarations expert_routing() {
  return {
      detail(key("expert_parallel.moe_layer_pattern", text(), "names of layers of experts"),
             kNoExperts),
      detail(key("expert_parallel.expert_pattern", text(), "name of a layer's experts"),
             kNoExperts),
      detail(key("expert_parallel.router_pattern", text(), "name of a layer's router"), kNoExperts),
      detail(key("expert_parallel.expert_w1", text(), "name of an expert's gate matrix"),
             kNoExperts),
      detail(key("expert_parallel.expert_w2", text(), "name of an expert's down matrix"),
             kNoExperts),
      detail(key("expert_parallel.expert_w3", text(), "name of an expert's up matrix"), kNoExperts),
      detail(key("expert_parallel.num_experts_attr",
                 text(),
                 "where a model's config says how many experts it has"),
             kNoExperts),
      detail(key("expert_parallel.top_k_attr",
                 text(),
                 "where a model's config says how many experts a token uses"),
             kNoExperts),
      detail(or_auto(key("expert_parallel.top_k", whole(kAtLeastOne), "experts that a token uses")),
             kNoExperts),
      detail(or_auto(key("expert_parallel.score_func",
                         one_of({"softmax", "sigmoid"}),
                         "how a router scores experts")),
             kNoExperts),
      detail(or_auto(key("expert_parallel.score_apply",
                         one_of({"pre", "post"}),
                         "whether scores weight an expert's input or output")),
             kNoExperts),
      detail(key("expert_parallel.route_norm", flag(nullptr), "make a token's scores sum to 1"),
             kNoExperts),
      detail(key("expert_parallel.route_scale",
                 number(kNotNegative, 1.0),
                 "factor of a router's scores"),
             kNoExperts),
      detail(or_auto(key("expert_parallel.routed_scaling_factor",
                         number(kNotNegative),
                         "factor of what experts add to a token")),
             kNoExperts),
      detail(key("expert_parallel.has_shared_experts",
                 flag(nullptr),
                 "whether every token uses some experts"),
             kNoExperts),
      detail(key("expert_parallel.shared_experts_pattern",
                 text(),
                 "name of the experts that every token uses"),
             kNoExperts),
      detail(key("expert_parallel.shared_experts_gate_pattern",
                 text(),
                 "name of the gate of experts that every token uses"),
             kNoExperts),
  };
}

}  // namespace

Declarations parallelism_keys() {
  return joined({tensor_keys(), grid_keys(), pipeline_keys(), expert_sizes(), expert_routing()});
}

}  // namespace zeroth::config::deepspeed
