#include "config/keys/forms.h"

// LLaMA-Factory's options of the model: how it is loaded, changed, quantised, exported and served.
namespace zeroth::config {
namespace {

std::vector<Part> checkpointing_parts(const Json& value) {
  return {{"gradient_checkpointing", !value.get<bool>()}};
}

Declaration if_quantised(Declaration key) {
  key.without_effect = [](const Values& values) {
    return values["quantization_bit"].is_number()
               ? std::nullopt
               : std::optional<std::string>("quantization_bit is not given");
  };
  return key;
}

Declarations loading_keys() {
  return {
      refused("adapter_folder",
              text(),
              "folder that adapters are looked for in",
              "give the whole path in --adapter_name_or_path"),
      also_called({"use_fast"},
                  harmless("use_fast_tokenizer",
                           flag(true),
                           "use the tokenizer that is not written in Python",
                           "there is one tokenizer, and it is a fast one")),
      harmless("trust_remote_code",
               flag(false),
               "run the model folder's Python code",
               "a model folder's Python code is never run"),
      also_called({"use_auth_token"},
                  harmless("hf_hub_token",
                           password(),
                           "password of the Hugging Face hub",
                           "the Hugging Face hub is not asked for models")),
      harmless("ms_hub_token",
               password(),
               "password of the ModelScope hub",
               "the ModelScope hub is not asked for models"),
      harmless("om_hub_token",
               password(),
               "password of the Modelers hub",
               "the Modelers hub is not asked for models"),
      harmless("low_cpu_mem_usage",
               flag(true),
               "load weights without a second copy",
               "weights are mapped from their files"),
      refused("train_from_scratch",
              flag(false),
              "start from random weights",
              "make the model with zeroth init-model and train it with --finetuning_type full"),
      harmless("print_param_status",
               flag(false),
               "print every parameter's type and place",
               "the start table says how many parameters are trained"),
  };
}

Declarations token_keys() {
  return {
      refused("split_special_tokens",
              flag(false),
              "read special tokens in a text as plain text",
              "special tokens in a text stand for themselves: take them out of the rows"),
      refused("new_special_tokens_config",
              text(),
              "file that describes tokens to add",
              "added tokens start at the mean of the others: use --add_special_tokens"),
      refused("init_special_tokens",
              one_of({"noise_init", "desc_init", "desc_init_w_noise"}, "noise_init"),
              "how the embeddings of added tokens start",
              "added tokens start at the mean of the others: leave it out"),
  };
}

Declarations architecture_keys() {
  return {
      planned("rope_scaling",
              one_of({"linear", "dynamic", "yarn", "llama3"}),
              "stretch the positions for longer rows",
              "the model's own config.json decides"),
      spelled({{"off", "disabled"}, {"false", "disabled"}, {"on", "fa2"}, {"true", "fa2"}},
              harmless("flash_attn",
                       one_of({"auto", "disabled", "sdpa", "fa2", "fa3"}, "auto"),
                       "which attention to compute with",
                       "there is one attention, without a stored score matrix")),
      refused("shift_attn",
              flag(false),
              "LongLoRA's shifted groups",
              "attention sees all earlier tokens of its row: leave it out"),
      refused("mixture_of_depths",
              one_of({"convert", "load"}),
              "let tokens skip blocks",
              "every token passes every block: leave it out"),
      refused("moe_aux_loss_coef",
              number(kNotNegative),
              "weight of the router's loss",
              "models with a router (mixture of experts) are not supported: leave it out"),
      refused("upcast_layernorm",
              flag(false),
              "keep the norms' weights in fp32",
              "master weights are fp32, a forward computes in one type: leave out --bf16 for "
              "fp32 throughout"),
      refused("upcast_lmhead_output",
              flag(false),
              "turn logits into fp32",
              "the loss is computed in fp32 already: leave it out"),
  };
}

Declarations engine_keys() {
  Declaration checkpointing{
      .name = "disable_gradient_checkpointing",
      .type = ValueType::kBoolean,
      .default_value = true,
      .commands = kUpdates,
      .help = "the opposite of gradient_checkpointing, as LLaMA-Factory says it",
      .parts = checkpointing_parts};
  return {
      std::move(checkpointing),
      harmless("use_reentrant_gc",
               flag(true),
               "recompute PyTorch's older way",
               "recomputation does not go through PyTorch's graph"),
      harmless("use_unsloth",
               flag(false),
               "use Unsloth's GPU kernels",
               "Unsloth's kernels compute the same, the engine has its own"),
      harmless("use_unsloth_gc",
               flag(false),
               "keep activations in host memory",
               "activations that gradient_checkpointing keeps are in host memory already"),
      harmless("enable_liger_kernel",
               flag(false),
               "use Liger's GPU kernels",
               "Liger's kernels compute the same, the engine has its own"),
      harmless("use_v1_kernels",
               flag(false),
               "use LLaMA-Factory's GPU kernels",
               "LLaMA-Factory's kernels compute the same, the engine has its own"),
      harmless("use_kv_cache",
               flag(true),
               "keep keys and values while generating",
               "generation always keeps keys and values"),
      refused("infer_dtype",
              one_of({"auto", "float16", "bfloat16", "float32"}, "auto"),
              "type to predict in",
              "use --bf16 or --fp16; float32 is what is computed in without them"),
      refused("infer_backend",
              one_of({"huggingface", "vllm", "sglang", "ktransformers"}, "huggingface"),
              "which engine generates",
              "zeroth predict generates itself: leave it out"),
      harmless("offload_folder",
               text("offload"),
               "folder for weights that do not fit",
               "no weights are moved out while predicting"),
  };
}

Declarations quantisation_keys() {
  return {
      planned("quantization_bit",
              whole({.min = 1, .max = 8}, nullptr, "bits"),
              "quantise the frozen weights while loading",
              "weights are used as they are stored"),
      if_quantised(planned(
          "quantization_method",
          one_of({"bnb", "gptq", "awq", "aqlm", "quanto", "eetq", "hqq", "mxfp4", "fp8"}, "bnb"),
          "how frozen weights are quantised",
          "no weights are quantised yet")),
      if_quantised(planned("quantization_type",
                           one_of({"nf4", "fp4"}, "nf4"),
                           "the 16 values of a 4-bit weight",
                           "no weights of 4 bits are read yet")),
      if_quantised(planned("double_quantization",
                           flag(true),
                           "quantise the scales as well",
                           "no scales are quantised yet")),
      refused("quantization_device_map",
              one_of({"auto"}),
              "spread a quantised model over GPUs",
              "a model is divided by --zero_stage 3"),
      refused("fp8",
              flag(false),
              "compute in 8-bit floating point",
              "no product is computed in 8 bits: use --bf16"),
      harmless("fp8_backend",
               one_of({"auto", "torchao", "te", "msamp"}, "auto"),
               "library for 8-bit products",
               "fp8 is refused, so it needs no library"),
      harmless("fp8_enable_fsdp_float8_all_gather",
               flag(false),
               "gather weights in 8 bits",
               "fp8 is refused, so no weights are gathered in it"),
  };
}

Declarations other_export_keys() {
  return {
      harmless("export_device",
               one_of({"cpu", "auto"}, "cpu"),
               "where to merge",
               "merging gives the same weights anywhere"),
      refused("export_quantization_bit",
              whole({.min = 1, .max = 8}, nullptr, "bits"),
              "quantise the merged model",
              "results are written in the type they are trained in: quantise them afterwards"),
      harmless("export_quantization_dataset",
               text(),
               "rows to quantise by",
               "export_quantization_bit is refused, so it needs no rows"),
      harmless("export_quantization_nsamples",
               whole(kAtLeastOne, 128, "rows"),
               "how many rows to quantise by",
               "export_quantization_bit is refused, so it counts no rows"),
      harmless("export_quantization_maxlen",
               whole(kAtLeastOne, 1024, "tokens"),
               "longest row to quantise by",
               "export_quantization_bit is refused, so it measures no rows"),
      refused("export_legacy_format",
              flag(false),
              "write .bin files",
              "results are safetensors, which every loader reads: leave it out"),
      refused("export_hub_model_id",
              text(),
              "send the merged model to the hub",
              "nothing is sent anywhere: upload the folder yourself"),
  };
}

}  // namespace

Declarations llama_factory_model_keys() {
  return joined({in_section("Model", loading_keys()),
                 in_section("Vocabulary", token_keys()),
                 in_section("Model", architecture_keys()),
                 in_section("Speed and memory", engine_keys()),
                 in_section("Quantisation", quantisation_keys()),
                 in_section("Export", other_export_keys())});
}

}  // namespace zeroth::config
