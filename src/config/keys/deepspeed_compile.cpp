#include "config/keys/deepspeed.h"

namespace zeroth::config::deepspeed {
namespace {

constexpr auto kNoCompiler = "nothing is compiled while it runs";
constexpr auto kNoHybrid = "no engine switches between training and generating here";

Declarations deepcompile_keys() {
  return {
      refused(key("compile.deepcompile", flag(false), "let a compiler place the collectives"),
              {false},
              "the engine is compiled already and walks units in a fixed order; leave it out"),
      harmless(key("compile.disable", flag(false), "an older word: compile nothing"),
               "the engine is native: it is not compiled when it starts, disabled or not"),
      harmless(key("compile.backend", text(), "an older word: which of PyTorch's compilers"),
               "no PyTorch compiler takes part"),
      detail(key("compile.passes", names(), "rewrites of DeepCompile, in order"), kNoCompiler),
      detail(key("compile.free_activation", flag(false), "DeepCompile frees activations early"),
             kNoCompiler),
      detail(key("compile.free_activation_threshold",
                 whole(kNotNegative, 10485760, "bytes"),
                 "smallest activation that DeepCompile frees early"),
             kNoCompiler),
      detail(key("compile.offload_activation",
                 flag(false),
                 "DeepCompile moves activations to the host"),
             kNoCompiler),
      detail(key("compile.offload_activation_pin_memory",
                 flag(true),
                 "DeepCompile locks the pages of moved activations"),
             kNoCompiler),
      detail(key("compile.offload_opt_states",
                 flag(false),
                 "DeepCompile moves the optimizer's state to the host"),
             kNoCompiler),
      detail(key("compile.offload_parameters",
                 flag(false),
                 "DeepCompile moves parameters to the host"),
             kNoCompiler),
      detail(key("compile.double_buffer",
                 flag(true),
                 "DeepCompile fills one buffer while another is sent"),
             kNoCompiler),
      detail(key("compile.symmetric_memory",
                 flag(false),
                 "DeepCompile uses memory that all GPUs can address"),
             kNoCompiler),
      detail(key("compile.debug_log", flag(false), "DeepCompile writes a log"), kNoCompiler),
  };
}

Declarations deepcompile_details() {
  return {
      detail(
          key("compile.sync_before_reduce", flag(false), "DeepCompile waits before each reduction"),
          kNoCompiler),
      detail(
          key("compile.sync_after_reduce", flag(false), "DeepCompile waits after each reduction"),
          kNoCompiler),
      detail(
          key("compile.sync_before_allgather", flag(false), "DeepCompile waits before each gather"),
          kNoCompiler),
      detail(
          key("compile.sync_after_allgather", flag(false), "DeepCompile waits after each gather"),
          kNoCompiler),
      detail(key("compile.keep_int_input_tensors",
                 flag(true),
                 "DeepCompile keeps inputs that are integers"),
             kNoCompiler),
      detail(key("compile.keep_all_input_tensors", flag(false), "DeepCompile keeps all inputs"),
             kNoCompiler),
  };
}

Declarations hybrid_keys() {
  return {
      refused(key("hybrid_engine.enabled",
                  flag(false),
                  "generate with the weights that are being trained"),
              {false},
              "leave hybrid_engine out; zeroth predict generates with a trained adapter or model"),
      detail(key("hybrid_engine.max_out_tokens",
                 whole(kAtLeastOne, 512, "tokens"),
                 "longest answer while training"),
             kNoHybrid),
      detail(key("hybrid_engine.inference_tp_size",
                 whole(kAtLeastOne, 1, "ranks"),
                 "ranks that split each matrix while generating"),
             kNoHybrid),
      detail(key("hybrid_engine.release_inference_cache",
                 flag(false),
                 "free keys and values before training goes on"),
             kNoHybrid),
      detail(key("hybrid_engine.pin_parameters",
                 flag(true),
                 "lock the pages of parameters while generating"),
             kNoHybrid),
      detail(key("hybrid_engine.tp_gather_partition_size",
                 whole(kAtLeastOne, 8),
                 "layers gathered together while generating"),
             kNoHybrid),
      detail(key("hybrid_engine.enable_cuda_graph",
                 flag(false),
                 "record the generation of a token as a CUDA graph"),
             kNoHybrid),
  };
}

}  // namespace

Declarations compile_keys() {
  return joined({deepcompile_keys(), deepcompile_details(), hybrid_keys()});
}

}  // namespace zeroth::config::deepspeed
