#include "config/run_config.h"

#include <gtest/gtest.h>

namespace zeroth::config {
namespace {

RunConfig with_no_default_left() {
  RunConfig c;
  c.command = Command::kPredict;
  c.model = {.model_name_or_path = "m",
             .model_config = "c",
             .adapter_name_or_path = "a",
             .precision = Precision::kFp16,
             .loss_scale = {.fixed = 128,
                            .initial_power = 12,
                            .window = 500,
                            .hysteresis = 4,
                            .consecutive_hysteresis = true,
                            .min_scale = 0.5},
             .check_grad_overflow = false};
  c.finetune = {.type = FinetuningType::kFull,
                .lora_rank = 3,
                .lora_alpha = 0.1,
                .lora_dropout = 0.3,
                .lora_targets = {"q", "v"},
                .exclude_modules = {"w"},
                .layers_to_transform = {"3"},
                .layers_pattern = {"h"},
                .rank_pattern = {{"q", 2}},
                .alpha_pattern = {{"v", 0.5}},
                .use_rslora = true,
                .use_dora = true,
                .modules_to_save = {"lm_head"},
                .bias = BiasTraining::kLoraOnly,
                .init_lora_weights = LoraStart::kGaussian,
                .loraplus_lr_ratio = 16,
                .loraplus_lr_embedding = 1e-5,
                .create_new_adapter = true,
                .freeze_trainable_layers = -1,
                .freeze_trainable_modules = {"mlp"},
                .freeze_extra_modules = {"norm"},
                .gradient_checkpointing = true};
  c.data = {.stage = TrainStage::kPretrain,
            .dataset = {"x"},
            .eval_dataset = {"y", "z"},
            .val_size = 0.25,
            .prompt_template = "alpaca",
            .cutoff_len = 77,
            .max_samples = 5,
            .train_on_prompt = true,
            .skip_bad_rows = true,
            .packing = false,
            .shuffle = false};
  c.batch = {.micro_batch_rows = 3, .accumulation = 5, .eval_rows = 7, .world_size = 2};
  c.zero = {.stage = 3,
            .reduce_bucket_elements = 1,
            .allgather_bucket_elements = 2,
            .overlap_comm = false,
            .reduce_scatter = false,
            .prefetch_elements = 0,
            .persistence_elements = 4,
            .max_live_elements = 5,
            .sub_group_elements = 6,
            .gather_16bit_on_save = false,
            .ignore_unused_parameters = false,
            .communication = NumberType::kBf16,
            .grad_accum = NumberType::kFp16,
            .reduce_every_micro_step = false};
  c.offload = {
      .optimizer = OffloadDevice::kNvme,
      .parameters = OffloadDevice::kCpu,
      .optimizer_path = "/o",
      .parameter_path = "/p",
      .optimizer_ratio = 0.5,
      .parameters_in_memory = 7,
      .parameter_buffers = 2,
      .reads_ahead = false,
      .writes_behind = false,
      .io = OffloadIo::kThreads,
      .transfers = {
          .block_bytes = 4096, .depth = 9, .threads = 3, .submits_singly = true, .refills = false}};
  c.optimizer = {.kind = OptimizerKind::kLamb,
                 .learning_rate = 1.0 / 3,
                 .weight_decay = 0.01,
                 .beta1 = 0.8,
                 .beta2 = 0.95,
                 .epsilon = 1e-6,
                 .momentum = 0.9,
                 .dampening = 0.1,
                 .nesterov = true,
                 .bias_correction = false,
                 .lr_decay = 0.2,
                 .min_coeff = 0.3,
                 .max_coeff = 3,
                 .max_grad_norm = 0,
                 .max_skipped = 7};
  c.schedule = {.kind = ScheduleKind::kConstantWithWarmup,
                .warmup_ratio = 0.1,
                .warmup_steps = 4,
                .num_train_epochs = 0.5,
                .max_steps = 9,
                .warmup_max_lr = 0.25,
                .total_num_steps = 11,
                .curve = {.num_cycles = 2, .warmup_type = arithmetic::Slope::kCosine},
                .warmup = {.warmup_type = arithmetic::WarmupType::kLinear},
                .one_cycle = {.cycle_max_lr = 3},
                .range_test = {.lr_range_test_staircase = true}};
  c.output = {.output_dir = "o",
              .overwrite_output_dir = true,
              .logging_steps = 2,
              .log_micro_steps = true,
              .eval_cadence = Cadence::kEpoch,
              .eval_steps = 6};
  c.generation = {.do_sample = true,
                  .temperature = 0.5,
                  .top_p = 0.9,
                  .top_k = 4,
                  .repetition_penalty = 1.1,
                  .max_new_tokens = 8,
                  .max_length = 9,
                  .skip_special_tokens = false};
  c.seed = 7;
  c.threads = 3;
  c.json_output = c.decode = c.messages = c.no_special_tokens = true;
  c.vocab_size = 512;
  c.settings = {{.key = "seed",
                 .value = 7,
                 .source = "command line",
                 .overrides = {{.value = 8, .source = "f.json:3"}},
                 .agreeing = {"g.json:4"},
                 .auto_in = "h.json:5",
                 .given = true,
                 .in_table = true,
                 .spelled = "seed"}};
  c.planned = {{.key = "fp16",
                .value = true,
                .source = "command line",
                .why = "later",
                .as_written = "fp16"}};
  c.notices = {"small"};
  c.grid = {.world_size = 8, .dp = 2, .pp = 1, .tp = 2, .sp = 2, .source = "--ranks"};
  c.without_effect = {{.key = "top_k", .value = 4, .source = "command line", .why = "so"}};
  return c;
}

TEST(RunConfigJson, ComesBackWithoutLoss) {
  const RunConfig config = with_no_default_left();
  EXPECT_EQ(from_json(Json::parse(to_json(config).dump())), config);
  EXPECT_EQ(from_json(to_json(RunConfig{})), RunConfig{});
}

}  // namespace
}  // namespace zeroth::config
