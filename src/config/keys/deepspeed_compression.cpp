#include "config/keys/deepspeed.h"

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kNotCompressed = "a model is trained as it is here, not compressed";
constexpr auto kNotQuantised = "weights are used in the type they are stored in";
constexpr auto kDenseAttention = "every token attends to all tokens before it";

// The keys that all methods of compression_training share, said of what each of them takes away.
Declarations method_keys(const std::string& method, const std::string& what) {
  const std::string method_block = "compression_training." + method + ".";
  const std::string shared = method_block + "shared_parameters.";
  return {
      refused(key(shared + "enabled", flag(false), what + " while training"),
              {false},
              "compression changes what is trained; leave " + method + " out or write false"),
      detail(key(shared + "schedule_offset",
                 whole(kNotNegative, nullptr, "updates"),
                 "updates before it begins to " + what),
             kNotCompressed),
      detail(key(method_block + "different_groups",
                 block(),
                 "modules in which to " + what + ", in groups of any names"),
             kNotCompressed),
  };
}

Declarations weight_quantisation() {
  const std::string shared = "compression_training.weight_quantization.shared_parameters.";
  return joined(
      {method_keys("weight_quantization", "round weights"),
       {
           detail(key(shared + "quantizer_kernel", flag(false), "round weights in one kernel"),
                  kNotCompressed),
           detail(key(shared + "quantize_groups",
                      whole(kAtLeastOne, 1),
                      "parts of a matrix that are rounded on scales of their own"),
                  kNotCompressed),
           detail(key(shared + "quantize_verbose", flag(false), "print how weights are rounded"),
                  kNotCompressed),
           detail(key(shared + "quantization_type",
                      one_of({"symmetric", "asymmetric"}, "symmetric"),
                      "whether the scale of rounded weights lies around zero"),
                  kNotCompressed),
           detail(key(shared + "quantize_weight_in_forward",
                      flag(false),
                      "round weights in each forward, not in the optimizer"),
                  kNotCompressed),
           detail(key(shared + "rounding",
                      one_of({"nearest", "stochastic"}, "nearest"),
                      "round weights to the nearest value or by chance"),
                  kNotCompressed),
           detail(key(shared + "fp16_mixed_quantize.enabled",
                      flag(false),
                      "mix rounded weights with fp16 ones"),
                  kNotCompressed),
           detail(key(shared + "fp16_mixed_quantize.quantize_change_ratio",
                      number(kNotNegative, 0.001),
                      "how fast the share of rounded weights grows in the mix"),
                  kNotCompressed),
       }});
}

Declarations activation_quantisation() {
  const std::string shared = "compression_training.activation_quantization.shared_parameters.";
  Declarations keys = method_keys("activation_quantization", "round activations");
  keys.push_back(detail(key(shared + "quantization_type",
                            one_of({"symmetric", "asymmetric"}, "symmetric"),
                            "whether the scale of rounded activations lies around zero"),
                        kNotCompressed));
  keys.push_back(detail(key(shared + "range_calibration",
                            one_of({"static", "dynamic"}, "dynamic"),
                            "whether the scale of rounded activations is found anew each time"),
                        kNotCompressed));
  return keys;
}

Declarations pruning(const std::string& method, const std::string& what, std::string measure) {
  Declarations keys = method_keys(method, "remove " + what);
  keys.push_back(detail(key("compression_training." + method + ".shared_parameters.method",
                            one_of({"l1", "topk", "snip_momentum"}, std::move(measure)),
                            "how the " + what + " to remove are chosen"),
                        kNotCompressed));
  return keys;
}

Declarations layer_reduction() {
  const std::string block = "compression_training.layer_reduction.";
  return {
      refused(key(block + "enabled", flag(false), "start from some of a larger model's layers"),
              {false},
              "a model keeps its layers; make the smaller folder beforehand"),
      detail(key(block + "keep_number_layer",
                 whole(kAtLeastOne, nullptr, "layers"),
                 "layers that are kept"),
             kNotCompressed),
      detail(key(block + "module_name_prefix", text(), "name of the list of layers"),
             kNotCompressed),
      detail(key(block + "teacher_layer",
                 number_list(),
                 "which of the larger model's layers are kept"),
             kNotCompressed),
      detail(
          key(block + "other_module_name", names(), "further modules that the larger model gives"),
          kNotCompressed),
  };
}

Declarations compression_training() {
  return joined({weight_quantisation(),
                 activation_quantisation(),
                 pruning("sparse_pruning", "single weights", "l1"),
                 pruning("row_pruning", "rows of matrices", "l1"),
                 pruning("head_pruning", "attention heads", "topk"),
                 pruning("channel_pruning", "channels", "l1"),
                 layer_reduction(),
                 {detail(key("compression_training.head_pruning.shared_parameters.num_heads",
                             whole(kAtLeastOne),
                             "attention heads that a layer has"),
                         kNotCompressed)}});
}

Declarations older_quantisation() {
  return {
      refused(key("quantize_training.enabled",
                  flag(false),
                  "round weights ever more while training, the older block"),
              {false},
              "compression changes what is trained; leave quantize_training out"),
      detail(key("quantize_training.quantize_verbose", flag(false), "print the bits in use"),
             kNotQuantised),
      detail(key("quantize_training.quantizer_kernel", flag(false), "round in one kernel"),
             kNotQuantised),
      detail(key("quantize_training.quantize_groups",
                 whole(kAtLeastOne, 1),
                 "parts of a matrix with scales of their own"),
             kNotQuantised),
      detail(key("quantize_training.quantize_bits.start_bits",
                 whole(kAtLeastOne, 16, "bits"),
                 "bits of a weight at the start"),
             kNotQuantised),
      detail(key("quantize_training.quantize_bits.target_bits",
                 whole(kAtLeastOne, 8, "bits"),
                 "bits of a weight at the end"),
             kNotQuantised),
      detail(key("quantize_training.quantize_schedule.quantize_period",
                 whole(kAtLeastOne, 100, "updates"),
                 "updates until a bit is given up"),
             kNotQuantised),
      detail(key("quantize_training.quantize_schedule.schedule_offset",
                 whole(kNotNegative, 100, "updates"),
                 "updates before the first bit is given up"),
             kNotQuantised),
      detail(key("quantize_training.quantize_algo.q_type",
                 one_of({"symmetric", "asymmetric"}, "symmetric"),
                 "whether scales lie around zero"),
             kNotQuantised),
      detail(key("quantize_training.quantize_algo.rounding",
                 one_of({"nearest", "stochastic"}, "nearest"),
                 "round to the nearest value or by chance"),
             kNotQuantised),
      detail(key("quantize_training.fp16_mixed_quantize.enabled",
                 flag(false),
                 "begin with some weights rounded and the others in fp16"),
             kNotQuantised),
      detail(key("quantize_training.fp16_mixed_quantize.quantize_change_ratio",
                 number(kNotNegative, 0.001),
                 "how fast rounded weights take over"),
             kNotQuantised),
  };
}

Declarations loading_quantisation() {
  return {
      detail(key("weight_quantization.enabled", flag(true), "whether the two ways below are used"),
             kNotQuantised),
      refused(key("weight_quantization.quantized_initialization",
                  block(),
                  "round frozen weights while they are loaded"),
              {Json::object()},
              "weights are used in the type they are stored in; leave it out"),
      refused(key("weight_quantization.post_init_quant",
                  block(),
                  "round frozen weights after they are loaded"),
              {Json::object()},
              "weights are used in the type they are stored in; leave it out"),
  };
}

Declarations attention_keys() {
  const auto blocks = [](Json by_default) {
    return whole(kNotNegative, std::move(by_default), "blocks");
  };
  return {
      detail(key("sparse_attention.mode",
                 one_of({"dense", "fixed", "variable", "bigbird", "bslongformer"}, "fixed"),
                 "pattern of sparse attention, which DeepSpeed's engine never uses"),
             kDenseAttention),
      detail(key("sparse_attention.block",
                 whole(kAtLeastOne, 16, "tokens"),
                 "tokens on the side of a block of sparse attention"),
             kDenseAttention),
      detail(key("sparse_attention.different_layout_per_head",
                 flag(false),
                 "a sparse pattern for each head"),
             kDenseAttention),
      detail(key("sparse_attention.num_local_blocks", blocks(4), "blocks seen around a token"),
             kDenseAttention),
      detail(key("sparse_attention.num_global_blocks", blocks(1), "blocks that all tokens see"),
             kDenseAttention),
      detail(key("sparse_attention.attention",
                 one_of({"unidirectional", "bidirectional"}, "bidirectional"),
                 "whether sparse attention looks ahead"),
             kDenseAttention),
      detail(key("sparse_attention.horizontal_global_attention",
                 flag(false),
                 "global blocks of sparse attention see all tokens"),
             kDenseAttention),
      detail(key("sparse_attention.num_different_global_patterns",
                 whole(kAtLeastOne, 1),
                 "sparse patterns with other global blocks"),
             kDenseAttention),
      detail(key("sparse_attention.num_random_blocks", blocks(0), "blocks seen by chance"),
             kDenseAttention),
      detail(key("sparse_attention.local_window_blocks",
                 number_list(),
                 "sizes of the windows of sparse attention"),
             kDenseAttention),
      detail(key("sparse_attention.global_block_indices",
                 number_list(),
                 "first blocks that all tokens see"),
             kDenseAttention),
      detail(key("sparse_attention.global_block_end_indices",
                 number_list(),
                 "last blocks that all tokens see"),
             kDenseAttention),
      detail(key("sparse_attention.num_sliding_window_blocks",
                 blocks(3),
                 "blocks of the window that moves along"),
             kDenseAttention),
  };
}

}  // namespace

Declarations compression_keys() {
  return joined(
      {compression_training(), older_quantisation(), loading_quantisation(), attention_keys()});
}

}  // namespace zeroth::config::deepspeed
