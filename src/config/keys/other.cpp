#include "config/field.h"
#include "config/keys/keys.h"

// Keys of Transformers and LLaMA-Factory that people have in their commands and that do nothing
// here: the ones ahead of their feature, and the ones on which no result depends.
namespace zeroth::config {
namespace {

Declaration planned(std::string name,
                    std::vector<Json> off_values,
                    std::string reason,
                    std::vector<std::string> aliases = {}) {
  return {.name = std::move(name),
          .aliases = std::move(aliases),
          .type = ValueType::kAny,
          .commands = kRunFamily,
          .status = Status::kPlanned,
          .off_values = std::move(off_values),
          .reason = std::move(reason)};
}

Declaration harmless(std::string name, std::string reason) {
  return {.name = std::move(name),
          .type = ValueType::kAny,
          .commands = kRunFamily,
          .status = Status::kHarmless,
          .reason = std::move(reason)};
}

Declaration saving(std::string name, std::vector<Json> off_values) {
  Declaration key = planned(std::move(name),
                            std::move(off_values),
                            "checkpoints while training are not built yet; use --save_strategy no");
  key.without_effect = [](const Values& values) {
    return values.is("save_strategy", "no") ? std::optional<std::string>("save_strategy is no")
                                            : std::nullopt;
  };
  return key;
}

// do_train, do_eval, do_predict: the command says which; a contradiction is refused.
Declaration action(std::string name, Command command) {
  Declaration key =
      planned(std::move(name),
              {false},
              "the command decides what is done; use zeroth " + command_name(command));
  key.without_effect = [command](const Values& values) {
    return values.command() == command ? std::optional<std::string>("the command says it already")
                                       : std::nullopt;
  };
  return key;
}

Declarations planned_tuning() {
  return {
      planned("fp16", {false}, "only fp32 and --bf16 are built"),
      planned("pure_bf16", {false}, "use --bf16, which keeps fp32 master weights"),
      planned("quantization_bit", {"none"}, "weights are used as they are stored"),
      planned("rope_scaling", {"none"}, "the model's own config.json decides"),
      planned("resize_vocab", {false}, "the embedding keeps its rows"),
      planned("additional_target", {"none"}, "only the adapter's matrices are trained"),
      planned("create_new_adapter", {false}, "an adapter that is given is trained on"),
      planned("use_rslora", {false}, "only plain LoRA is built"),
      planned("use_dora", {false}, "only plain LoRA is built"),
      planned("pissa_init", {false}, "only plain LoRA is built"),
      planned("loraplus_lr_ratio", {"none"}, "only plain LoRA is built"),
      planned("lr_scheduler_kwargs", {"none", "{}"}, "no schedule takes further settings yet"),
      planned("label_smoothing_factor", {0, 0.0}, "the plain loss is built"),
      planned("neftune_noise_alpha", {"none", 0}, "no noise is added to embeddings"),
      planned("early_stopping_steps", {"none"}, "training runs to its end"),
      planned("load_best_model_at_end", {false}, "the last weights are the result"),
      planned("gradient_checkpointing", {false}, "activations are kept"),
      planned("disable_gradient_checkpointing", {true}, "activations are kept: it is off already"),
      planned("torch_compile", {false}, "the engine is compiled already"),
      planned("use_galore", {false}, "optim is AdamW or SGD"),
      planned("use_apollo", {false}, "optim is AdamW or SGD"),
      planned("use_badam", {false}, "optim is AdamW or SGD"),
      planned("use_muon", {false}, "optim is AdamW or SGD"),
      planned("auto_find_batch_size", {false}, "the batch is what you say it is"),
  };
}

Declarations planned_data() {
  return {
      planned("mask_history", {false}, "every answer of a row is trained"),
      planned("neat_packing", {false}, "supervised rows are not packed"),
      planned("streaming", {false}, "all rows are read before training"),
      planned("mix_strategy", {"concat"}, "files are read one after the other"),
      planned("interleave_probs", {"none"}, "files are read one after the other"),
      planned("tool_format", {"none"}, "rows have no tools"),
      planned("default_system", {"none"}, "rows bring their own system text, or the template does"),
      planned("tokenized_path", {"none"}, "rows are tokenised at each start"),
      planned("eval_on_each_dataset", {false}, "all eval_dataset files are evaluated together"),
      planned("data_seed", {"none"}, "use --seed"),
      planned("group_by_length", {false}, "rows are shuffled"),
      planned("dataloader_drop_last", {false}, "the last rows of an epoch are trained too"),
      planned("num_beams", {1}, "greedy and sampled generation are built"),
      planned("length_penalty", {1, 1.0}, "it belongs to beams, which are not built"),
  };
}

Declarations planned_run() {
  Declarations keys{
      planned("deepspeed",
              {"none"},
              "ds_config.json files are not read yet; give the settings as options"),
      planned("accelerate_config",
              {"none"},
              "Accelerate files are not read yet; give the settings as options",
              {"config_file"}),
      planned("fsdp", {"none", ""}, "use --zero_stage 3, which shards the same"),
      planned(
          "resume_from_checkpoint", {false, "none"}, "checkpoints are not built yet", {"resume"}),
      planned(
          "save_strategy", {"no"}, "the result is saved at the end; checkpoints are not built yet"),
      saving("save_steps", {}),
      saving("save_total_limit", {"none"}),
      saving("save_only_model", {false}),
      planned("report_to", {"none"}, "metrics.jsonl is written; other records are not built yet"),
      planned("run_name", {"none"}, "the output folder names the run"),
      planned("plot_loss", {false}, "metrics.jsonl holds the losses"),
      planned("logging_first_step", {false}, "metrics.jsonl has every update"),
      planned("logging_strategy", {"steps"}, "use --logging_steps"),
      planned("eval_delay", {0}, "evaluation starts at once"),
      planned("eval_on_start", {false}, "use zeroth eval for the loss before training"),
      planned("compute_accuracy", {false}, "zeroth predict counts exact matches"),
      planned("nnodes", {1}, "several hosts are started by mpirun"),
      planned("push_to_hub", {false}, "nothing is sent anywhere"),
      harmless("local_rank", "the launcher's variables say which rank this is"),
      action("do_train", Command::kTrain),
      action("do_eval", Command::kEval),
      action("do_predict", Command::kPredict),
  };
  keys.push_back({.name = "messages",
                  .type = ValueType::kBoolean,
                  .default_value = false,
                  .commands = bit(Command::kTokenize),
                  .field = field(&RunConfig::messages),
                  .status = Status::kPlanned,
                  .off_values = {false},
                  .reason = "chat templates are not rendered yet"});
  return keys;
}

}  // namespace

Declarations planned_keys() {
  Declarations keys = planned_tuning();
  for (Declarations more : {planned_data(), planned_run()}) {
    keys.insert(keys.end(), more.begin(), more.end());
  }
  return keys;
}

Declarations harmless_keys() {
  return {
      harmless("preprocessing_num_workers", "tokenising needs no worker processes"),
      harmless("preprocessing_batch_size", "rows are tokenised one by one"),
      harmless("dataloader_num_workers", "batches are made in the training process"),
      harmless("dataloader_pin_memory", "the CPU reads batches where they lie"),
      harmless("dataloader_persistent_workers", "batches are made in the training process"),
      harmless("overwrite_cache", "no cache of tokenised rows is kept"),
      harmless("cache_dir", "nothing is downloaded"),
      harmless("use_fast_tokenizer", "there is one tokenizer"),
      harmless("trust_remote_code", "a model folder's Python code is never run"),
      harmless("low_cpu_mem_usage", "weights are mapped from their files"),
      harmless("flash_attn", "there is one attention, without a stored score matrix"),
      harmless("use_kv_cache", "generation always keeps keys and values"),
      harmless("remove_unused_columns", "only the columns that a row's format names are read"),
      harmless("ignore_pad_token_for_loss", "padding is never a target"),
      harmless("ddp_timeout", "one rank waits for nobody"),
      harmless("ddp_find_unused_parameters", "every trainable parameter gets a gradient"),
      harmless("predict_with_generate", "zeroth predict always generates"),
      harmless("average_tokens_across_devices", "the loss is always weighted by tokens"),
      harmless("disable_tqdm", "the progress line is plain where the output is not a terminal"),
      harmless("full_determinism",
               "the same seed, threads and processor always give the same bits"),
      harmless("include_num_input_tokens_seen", "metrics.jsonl always has the tokens"),
      harmless("save_safetensors", "results are always safetensors"),
      harmless("log_level", "there is one level"),
  };
}

}  // namespace zeroth::config
