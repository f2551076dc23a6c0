#include "config/keys/forms.h"

// LLaMA-Factory's options of what is trained and by which method, but for those that act
// (keys/finetune.cpp). Adapters and records come first; methods that Zeroth has not follow in
// llama_factory_methods.cpp.
namespace zeroth::config {
namespace {

Declarations adapter_keys() {
  return {
      refused("lora_bias",
              flag(false),
              "give each adapter's B a bias",
              "B has no bias: --bias trains those of the model"),
      refused("pissa_init",
              flag(false),
              "start the adapter from the weights' main directions",
              "adapters start as PEFT's default does: make a PiSSA adapter with PEFT and give it "
              "as --adapter_name_or_path"),
      harmless("pissa_iter",
               whole({.min = 0, .also = -1}, 16),
               "steps of PiSSA's decomposition",
               "pissa_init is refused, so nothing is decomposed"),
      harmless("pissa_convert",
               flag(false),
               "turn a PiSSA adapter into a plain one",
               "pissa_init is refused, so adapters are plain ones"),
  };
}

Declarations freeze_keys() {
  return {
      harmless("freeze_vision_tower",
               flag(true),
               "do not train the part that sees",
               "the models here do not see"),
      harmless("freeze_multi_modal_projector",
               flag(true),
               "do not train the part between eyes and language",
               "the models here have nothing beside language"),
      refused("freeze_language_model",
              flag(false),
              "do not train the language model",
              "there is nothing else to train: leave it out"),
      refused("use_llama_pro",
              flag(false),
              "train added blocks only",
              "blocks are not added: use --finetuning_type lora"),
  };
}

Declarations run_keys() {
  return {
      refused("pure_bf16",
              flag(false),
              "train bf16 weights without fp32 masters",
              "use --bf16, which keeps fp32 master weights"),
      refused("compute_accuracy",
              flag(false),
              "count the tokens that evaluation gets right",
              "evaluation gives loss and perplexity, zeroth predict counts exact matches"),
      refused("early_stopping_steps",
              whole(kAtLeastOne, nullptr, "evaluations"),
              "stop when evaluation gets no better",
              "training runs to its end: use --max_steps, and read eval_loss in metrics.jsonl"),
      planned("plot_loss",
              flag(false),
              "draw the losses",
              "no chart is drawn yet; metrics.jsonl holds the losses"),
      harmless("include_effective_tokens_per_second",
               flag(false),
               "log tokens a second without padding",
               "tokens_per_second counts tokens without padding"),
  };
}

Declarations loss_keys() {
  return {
      refused("use_dft_loss",
              flag(false),
              "weight each token by its probability",
              "the loss is the plain cross-entropy: leave it out"),
      refused("use_asft_loss",
              flag(false),
              "tie the model to its first weights",
              "no second model is held beside the trained one: leave it out"),
      harmless("asft_alpha",
               number(kNotNegative, 0.1),
               "how strongly ASFT ties",
               "use_asft_loss is refused, so nothing is tied"),
      refused("use_eaft_loss",
              flag(false),
              "weight each token by its entropy",
              "every target token weighs the same: leave it out"),
      harmless("eaft_alpha",
               number(kNotNegative, 1.0),
               "how strongly EAFT weights",
               "use_eaft_loss is refused, so nothing is weighted by entropy"),
  };
}

Declarations swanlab_keys() {
  return {
      refused("use_swanlab",
              flag(false),
              "send records to SwanLab",
              "nothing is sent anywhere: metrics.jsonl holds the records"),
      harmless("swanlab_project",
               text("llamafactory"),
               "SwanLab's project",
               "use_swanlab is refused, so there is no project"),
      harmless("swanlab_workspace",
               text(),
               "SwanLab's workspace",
               "use_swanlab is refused, so there is no workspace"),
      harmless("swanlab_run_name",
               text(),
               "the run's name at SwanLab",
               "use_swanlab is refused, so the run has no name there"),
      harmless("swanlab_mode",
               one_of({"cloud", "local"}, "cloud"),
               "where SwanLab keeps records",
               "use_swanlab is refused, so it keeps nothing"),
      harmless("swanlab_api_key",
               password(),
               "SwanLab's password",
               "use_swanlab is refused, so no password is sent"),
      harmless("swanlab_logdir",
               text(),
               "SwanLab's folder",
               "use_swanlab is refused, so it has no folder"),
      harmless("swanlab_lark_webhook_url",
               text(),
               "address SwanLab tells of the run's end",
               "use_swanlab is refused, so nobody is told"),
      harmless("swanlab_lark_secret",
               password(),
               "password of that address",
               "use_swanlab is refused, so no address is called"),
  };
}

Declarations ray_keys() {
  return {
      harmless("ray_run_name",
               text(),
               "the run's name in Ray",
               "Ray does not start the ranks, so it names no run"),
      harmless("ray_storage_path",
               text("./saves"),
               "Ray's folder",
               "results go to output_dir, not to Ray's folder"),
      refused("ray_storage_filesystem",
              one_of({"s3", "gs", "gcs"}),
              "Ray's remote storage",
              "results are written to a folder of this machine: use --output_dir"),
      refused("ray_num_workers",
              whole(kAtLeastOne, 1),
              "processes that Ray starts",
              "Ray does not start the ranks: use --ranks, or mpirun for several hosts"),
      harmless("resources_per_worker",
               block(),
               "what Ray gives each process",
               "Ray hands out no resources here"),
      harmless("placement_strategy",
               one_of({"SPREAD", "PACK", "STRICT_SPREAD", "STRICT_PACK"}, "PACK"),
               "where Ray puts its processes",
               "Ray places no process here"),
      harmless("ray_init_kwargs", block(), "Ray's further settings", "Ray is not started"),
  };
}

}  // namespace

Declarations llama_factory_tuning_keys() {
  return joined({in_section("Fine-tuning", adapter_keys()),
                 in_section("Freeze-tuning", freeze_keys()),
                 in_section("Training", run_keys()),
                 in_section("Losses", loss_keys()),
                 in_section("SwanLab", swanlab_keys()),
                 in_section("Ray", ray_keys())});
}

}  // namespace zeroth::config
