// A recipe as LLaMA-Factory's users write it: accepted unchanged, overridden by key=value, and what
// comes of it written down so that it gives the same run again.
#include <algorithm>

#include "config/report.h"
#include "config/support.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zeroth::config {
namespace {

constexpr auto kDeepSpeedFile = R"({
  "train_batch_size": "auto",
  "train_micro_batch_size_per_gpu": "auto",
  "gradient_accumulation_steps": "auto",
  "gradient_clipping": "auto",
  "zero_allow_untested_optimizer": true,
  "bf16": {"enabled": "auto"},
  "zero_optimization": {"stage": 2, "overlap_comm": false, "reduce_bucket_size": 5e8}
}
)";

std::string recipe_file() {
  const std::string deepspeed = scratch_file("ds_z2.json", kDeepSpeedFile);
  return scratch_file("llama3_lora_sft.yaml",
                      fmt::format(R"(### model
model_name_or_path: meta-llama/Meta-Llama-3-8B-Instruct
trust_remote_code: true

### method
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
deepspeed: {}

### dataset
dataset: identity,alpaca_en_demo
template: llama3
cutoff_len: 2048
max_samples: 1000
overwrite_cache: true
preprocessing_num_workers: 16
dataloader_num_workers: 4

### output
output_dir: saves/llama3-8b/lora/sft
logging_steps: 10
save_steps: 500
plot_loss: true
overwrite_output_dir: true
save_only_model: false
report_to: none  # choices: [none, wandb, tensorboard, swanlab, mlflow]

### train
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
learning_rate: 1.0e-4
num_train_epochs: 3.0
lr_scheduler_type: cosine
warmup_ratio: 0.1
bf16: true
ddp_timeout: 180000000
resume_from_checkpoint: null
)",
                                  deepspeed));
}

Resolution check(std::vector<std::string> arguments) {
  return resolve_all(Command::kCheck, arguments, {});
}

const SettingInForce& setting(const Resolution& resolution, const std::string& key) {
  const auto& settings = resolution.config.settings;
  const auto found = std::find_if(
      settings.begin(), settings.end(), [&](const SettingInForce& s) { return s.key == key; });
  EXPECT_NE(found, settings.end()) << key;
  return *found;
}

TEST(Recipe, ThatOfLlamaFactoryIsAcceptedUnchanged) {
  const Resolution resolution = check({recipe_file()});
  EXPECT_TRUE(resolution.problems.empty()) << messages(resolution.problems);
  const RunConfig& config = resolution.config;
  EXPECT_EQ(config.optimizer.learning_rate, 1e-4);
  EXPECT_EQ(config.batch.global_rows(), 8);
  EXPECT_EQ(config.schedule.kind, ScheduleKind::kCosine);
  EXPECT_EQ(config.schedule.warmup_ratio, 0.1);
  EXPECT_EQ(config.model.precision, Precision::kBf16);
  EXPECT_EQ(config.data.dataset.size(), 2U);
  EXPECT_EQ(config.data.max_samples, 1000);
  EXPECT_TRUE(config.output.overwrite_output_dir);
  EXPECT_EQ(account_of(resolution, "llama3_lora_sft.yaml").size(), 31U);
  EXPECT_EQ(account_of(resolution, "ds_z2.json").size(), 9U);
}

TEST(Recipe, KeyValueOverridesItAndIsShown) {
  const Resolution resolution = check({recipe_file(),
                                       "learning_rate=2e-5",
                                       "lora_rank=16",
                                       "zero_optimization.stage=1",
                                       "num_train_epochs=1"});
  EXPECT_TRUE(resolution.problems.empty()) << messages(resolution.problems);
  EXPECT_EQ(resolution.config.optimizer.learning_rate, 2e-5);
  EXPECT_EQ(resolution.config.finetune.lora_alpha, 32);
  const SettingInForce& rate = setting(resolution, "learning_rate");
  ASSERT_EQ(rate.overrides.size(), 1U);
  EXPECT_EQ(rate.overrides[0].value, 1e-4);
  EXPECT_EQ(rate.overrides[0].source, "llama3_lora_sft.yaml:34");
  const std::string table = start_table(resolution.config);
  for (const char* line :
       {"learning_rate 2e-05 (command line, overrides llama3_lora_sft.yaml:34: 0.0001)",
        "lora_rank 16 (command line, overrides llama3_lora_sft.yaml:9: 8)",
        "num_train_epochs 1 (command line, overrides llama3_lora_sft.yaml:35: 3)"}) {
    EXPECT_TRUE(has(table, line)) << line << "\n" << table;
  }
}

Json without_sources(const RunConfig& config) {
  Json recipe = effective_config(config);
  recipe.erase("_sources");
  return recipe;
}

void expect_to_come_back(const std::vector<std::string>& arguments) {
  const Resolution first = check(arguments);
  EXPECT_TRUE(first.problems.empty()) << messages(first.problems);
  const std::string written =
      scratch_file("effective_config.json", effective_config(first.config).dump(2));
  const Resolution again = check({written});
  EXPECT_TRUE(again.problems.empty()) << messages(again.problems);
  const Json differences =
      Json::diff(to_json(values_of(first.config)), to_json(values_of(again.config)));
  EXPECT_TRUE(differences.empty()) << differences.dump(2);
  const Json rewritten = Json::diff(without_sources(first.config), without_sources(again.config));
  EXPECT_TRUE(rewritten.empty()) << rewritten.dump(2);
}

TEST(Recipe, TheEffectiveConfigGivesTheSameRunAgain) {
  expect_to_come_back({recipe_file()});
  expect_to_come_back({recipe_file(), "learning_rate=2e-5", "lora_rank=16", "max_steps=7"});
  expect_to_come_back(
      {recipe_file(), "finetuning_type=full", "optim=sgd", "optim_args=momentum=0.5"});
  expect_to_come_back({recipe_file(), "optim=adam", "optimizer.params.adam_w_mode=false"});
  expect_to_come_back({recipe_file(), "optim=lion_32bit", "optimizer.params.betas=0.8,0.9"});
  expect_to_come_back({recipe_file(), "bf16=false", "fp16=true", "fp16.loss_scale_window=7"});
  expect_to_come_back({recipe_file(),
                       "ranks=2",
                       "zero_stage=3",
                       "finetuning_type=full",
                       "zero_optimization.gather_16bit_weights_on_model_save=false",
                       "zero_optimization.prefetch_bucket_size=0",
                       "reduce_every_micro_step=false",
                       "data_types.grad_accum_dtype=bf16",
                       "gradient_checkpointing=true"});
  expect_to_come_back({recipe_file(), "ranks=4", "val_size=0.1", "eval_strategy=steps"});
  expect_to_come_back(
      {recipe_file(), "lr_scheduler_type=WarmupDecayLR", "warmup_steps=3", "dataset_dir=data"});
}

}  // namespace
}  // namespace zeroth::config
