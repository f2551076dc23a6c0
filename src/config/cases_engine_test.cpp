// Settings of the engine: how it reduces, gathers, scales and moves, and which of them go together.
#include "config/case_support.h"

namespace zeroth::config {
namespace {

const Arguments kTwoRanks{"--world_size", "2"};

// A zero_optimization block of that stage, with further keys.
std::string at_stage(int stage, const std::string& more) {
  return "{\"zero_optimization\": {\"stage\": " + std::to_string(stage) + ", " + more + "}}";
}

std::string optimizer(const std::string& type, const std::string& parameters) {
  return "{\"optimizer\":\n{\"type\": \"" + type + "\", \"params\": {" + parameters + "}}}";
}

constexpr auto kStageThree = R"("stage3_prefetch_bucket_size": 0,
  "stage3_param_persistence_threshold": 1e4, "max_live_parameters": 2e6)";

TEST_F(Case, Zero_KeysOfStageThreeReachTheRunThere) {
  const Verdict verdict = check_json(at_stage(3, kStageThree), kTwoRanks);
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  const ZeroSettings& zero = verdict.all.config.zero;
  EXPECT_EQ(zero.prefetch_elements, 0);
  EXPECT_EQ(zero.persistence_elements, 10000);
  EXPECT_EQ(zero.max_live_elements, 2000000);
  EXPECT_EQ(
      check_json(at_stage(3, "\"sub_group_size\": 7"), kTwoRanks).all.config.zero.prefetch_elements,
      std::nullopt);
}

TEST_F(Case, Zero_KeysOfStageThreeAreListedElsewhere) {
  const Verdict below = check_json(at_stage(2, kStageThree), kTwoRanks);
  const Verdict alone = check_json(at_stage(3, kStageThree));
  for (const char* key : {"zero_optimization.stage3_prefetch_bucket_size",
                          "zero_optimization.stage3_param_persistence_threshold",
                          "zero_optimization.stage3_max_live_parameters"}) {
    EXPECT_TRUE(has(below.idle(key), "needs stage 3")) << key;
    EXPECT_TRUE(has(alone.idle(key), "one rank")) << key;
  }
  EXPECT_EQ(below.all.config.zero.persistence_elements, 0);
}

TEST_F(Case, Zero_ReduceScatterAndTheGatherBucketActAtStagesOneAndTwo) {
  const std::string keys = R"("reduce_scatter": false, "allgather_bucket_size": 1000)";
  for (const int stage : {1, 2}) {
    const Verdict verdict = check_json(at_stage(stage, keys), kTwoRanks);
    EXPECT_FALSE(verdict.all.config.zero.reduce_scatter);
    EXPECT_EQ(verdict.all.config.zero.allgather_bucket_elements, 1000);
  }
  for (const int stage : {0, 3}) {
    const Verdict verdict = check_json(at_stage(stage, keys), kTwoRanks);
    const std::string where = "stage " + std::to_string(stage);
    EXPECT_TRUE(has(verdict.idle("zero_optimization.reduce_scatter"), where));
    EXPECT_TRUE(has(verdict.idle("zero_optimization.allgather_bucket_size"), where));
    EXPECT_TRUE(verdict.all.config.zero.reduce_scatter);
  }
}

constexpr auto kOnFile = R"("offload_optimizer": {"device": "nvme", "nvme_path": "/scratch",
  "pipeline_write": false, "ratio": 0.5}, "offload_param": {"device": "nvme",
  "nvme_path": "/scratch", "max_in_cpu": 1e6, "buffer_count": 3}}, "aio": {"block_size": 8192,
  "queue_depth": 9, "intra_op_parallelism": 2, "single_submit": true, "overlap_events": false)";

TEST_F(Case, Offload_KeysReachTheRun) {
  const Verdict verdict = check_json(at_stage(3, kOnFile), kTwoRanks);
  ASSERT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.all.config.offload,
            (OffloadSettings{.optimizer = OffloadDevice::kNvme,
                             .parameters = OffloadDevice::kNvme,
                             .optimizer_path = "/scratch",
                             .parameter_path = "/scratch",
                             .optimizer_ratio = 0.5,
                             .parameters_in_memory = 1000000,
                             .parameter_buffers = 3,
                             .writes_behind = false,
                             .transfers = {.block_bytes = 8192,
                                           .depth = 9,
                                           .threads = 2,
                                           .submits_singly = true,
                                           .refills = false}}));
}

TEST_F(Case, Offload_TheStageActsForOneRankThatUsesFiles) {
  const Verdict verdict = check_json(at_stage(3, kOnFile));
  ASSERT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.all.config.zero.stage, 3);
  EXPECT_TRUE(has(verdict.idle("zero_optimization.offload_param.buffer_count"), "one rank alone"));
}

TEST_F(Case, Offload_DetailsOfTheOtherIoAreListed) {
  const Verdict threads =
      check_json(at_stage(3, kOnFile), {"--world_size", "2", "--aio.backend", "threads"});
  EXPECT_TRUE(has(threads.idle("aio.queue_depth"), "aio.backend is not io_uring"));
  EXPECT_EQ(threads.all.config.offload.io, OffloadIo::kThreads);
  const Verdict uring =
      check_json(at_stage(3, kOnFile), {"--world_size", "2", "--aio.backend", "io_uring"});
  EXPECT_TRUE(has(uring.idle("aio.intra_op_parallelism"), "aio.backend is not threads"));
}

TEST_F(Case, Offload_WhatHasNoEffectSaysWhy) {
  const Verdict cpu = check_json(
      at_stage(2, R"("offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"})"),
      kTwoRanks);
  ASSERT_TRUE(cpu.accepted()) << cpu.messages();
  EXPECT_TRUE(has(cpu.idle("zero_optimization.offload_optimizer.device"), "host memory"));
  EXPECT_TRUE(has(cpu.idle("zero_optimization.offload_param.device"), "needs stage 3"));
  EXPECT_TRUE(has(check_json(R"({"aio": {"block_size": 1000}})").idle("aio.block_size"),
                  "nothing is offloaded to nvme"));
}

TEST_F(Case, Offload_FilesNeedAFolder) {
  const Verdict state =
      check_json(at_stage(3, R"("offload_optimizer": {"device": "nvme"})"), kTwoRanks);
  EXPECT_FALSE(state.accepted());
  EXPECT_TRUE(state.says("needs zero_optimization.offload_optimizer.nvme_path"))
      << state.messages();
  const Verdict weights =
      check_json(at_stage(3, R"("offload_param": {"device": "nvme"})"), kTwoRanks);
  EXPECT_FALSE(weights.accepted());
  EXPECT_TRUE(weights.says("needs zero_optimization.offload_param.nvme_path"))
      << weights.messages();
}

TEST_F(Case, Offload_BlocksAreWholePages) {
  const Verdict verdict = check_json(
      at_stage(
          3,
          R"("offload_optimizer": {"device": "nvme", "nvme_path": "/s"}}, "aio": {"block_size": 1000)"),
      kTwoRanks);
  EXPECT_EQ(verdict.of_kind(ProblemKind::kRange).size(), 1U) << verdict.messages();
  EXPECT_TRUE(verdict.says("multiple of 4096")) << verdict.messages();
}

// More would abort the worker, or be taken for a kernel without io_uring.
TEST_F(Case, Offload_NoMoreIsAskedOfTheSystemThanItDoes) {
  for (const char* wrong : {R"("queue_depth": 32769)",
                            R"("intra_op_parallelism": 1025)",
                            R"("block_size": 1073745920)",
                            R"("block_size": 0)"}) {
    const Verdict verdict = check_json(std::string(R"({"aio": {)") + wrong + "}}", kTwoRanks);
    EXPECT_EQ(verdict.of_kind(ProblemKind::kRange).size(), 1U) << wrong << verdict.messages();
  }
}

TEST_F(Case, Offload_ARatioIsAShare) {
  for (const char* ratio : {"-0.1", "1.5"}) {
    const Verdict verdict = check_json(
        at_stage(
            1,
            std::string(R"("offload_optimizer": {"device": "nvme", "nvme_path": "/s", "ratio": )") +
                ratio + "}"),
        kTwoRanks);
    EXPECT_EQ(verdict.of_kind(ProblemKind::kRange).size(), 1U) << verdict.messages();
  }
}

TEST_F(Case, Offload_LambNeedsItsStateInMemory) {
  const std::string block = R"("offload_param": {"device": "nvme", "nvme_path": "/s"})";
  Arguments lamb = kTwoRanks;
  lamb.insert(lamb.end(), {"--optim", "lamb"});
  EXPECT_TRUE(check_json(at_stage(3, block), lamb).says("offload_param.device nvme"));
  EXPECT_TRUE(check_json(at_stage(2, block), lamb).accepted());  // without effect there
}

TEST_F(Case, Zero_TheGatherBucketIsEven) {
  const Verdict odd = check_json(at_stage(1, "\"allgather_bucket_size\": 1001"), kTwoRanks);
  EXPECT_EQ(odd.of_kind(ProblemKind::kRange).size(), 1U) << odd.messages();
  EXPECT_TRUE(odd.says("zero_optimization.allgather_bucket_size 1001 (ds.json:1): must be even"))
      << odd.messages();
  EXPECT_TRUE(check_json(at_stage(3, "\"allgather_bucket_size\": 1001"), kTwoRanks).accepted());
}

TEST_F(Case, Zero_WhatActsAtEveryStage) {
  const Verdict verdict = check_json(
      at_stage(0,
               R"("overlap_comm": false, "sub_group_size": 5, "ignore_unused_parameters": false)"),
      kTwoRanks);
  EXPECT_FALSE(verdict.all.config.zero.overlap_comm);
  EXPECT_FALSE(verdict.all.config.zero.ignore_unused_parameters);
  EXPECT_EQ(verdict.all.config.zero.sub_group_elements, 5);
}

TEST_F(Case, Zero_ReducingEveryMicroStepNeedsSeveral) {
  const std::string json = at_stage(0, "\"reduce_every_micro_step\": true");
  Arguments words = kTwoRanks;
  EXPECT_TRUE(has(check_json(json, words).idle("reduce_every_micro_step"), "one micro-step"));
  words.insert(words.end(), {"--batch_size", "2", "--gradient_accumulation_steps", "4"});
  EXPECT_EQ(check_json(json, words).all.config.zero.reduce_every_micro_step, true);
  words.push_back("--no_reduce_every_micro_step");
  EXPECT_EQ(check_json(json, words).all.config.zero.reduce_every_micro_step, false);
  EXPECT_EQ(check(words).all.config.zero.reduce_every_micro_step, false);
}

TEST_F(Case, Zero_AResultInFullPrecisionIsAskedForByFalse) {
  const std::string json =
      R"({"zero_optimization": {"stage": 3, "stage3_gather_16bit_weights_on_model_save": false}})";
  const char* key = "zero_optimization.stage3_gather_16bit_weights_on_model_save";
  const Verdict full = check_json(json, {"--bf16", "--finetuning_type", "full"});
  EXPECT_EQ(full.all.config.zero.gather_16bit_on_save, false);
  EXPECT_TRUE(has(check_json(json, {"--bf16"}).idle(key), "lora"));
  EXPECT_TRUE(has(check_json(json, {"--finetuning_type", "full"}).idle(key), "fp32"));
  EXPECT_TRUE(
      has(check_json(json, {"--fp16", "--finetuning_type", "full", "--zero_stage", "2"}).idle(key),
          "needs stage 3"));
  EXPECT_EQ(check({"--fp16", "--finetuning_type", "full"}).all.config.zero.gather_16bit_on_save,
            std::nullopt);
}

TEST_F(Case, N19_NarrowSumsAreAllowedAndNoticed) {
  const Verdict verdict = check_json(
      R"({"communication_data_type": "fp16", "data_types": {"grad_accum_dtype": "bfloat16"}})",
      kTwoRanks);
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.all.config.zero.communication, NumberType::kFp16);
  EXPECT_EQ(verdict.all.config.zero.grad_accum, NumberType::kBf16);
  EXPECT_TRUE(
      verdict.notices("data_types.grad_accum_dtype bfloat16 (ds.json:1): the gradients of "
                      "micro-steps are added up in 8 significant bits"));
  EXPECT_TRUE(verdict.notices("communication_data_type fp16 (ds.json:1): gradients are rounded"));
  const Verdict wide = check({"--communication_data_type", "fp32"});
  EXPECT_FALSE(wide.notices("significant bits"));
  EXPECT_EQ(wide.all.config.zero.grad_accum, NumberType::kFp32);
}

TEST_F(Case, Precision_EveryDialectSwitchesFp16On) {
  const Verdict dialects[] = {check_json(R"({"fp16": {"enabled": true}})"),
                              check_json(R"({"data_types": {"param_dtype": "fp16"}})"),
                              check_yaml("mixed_precision: fp16\n"),
                              check({"--fp16"}),
                              check({file("run.yaml", "fp16: true\nbf16: false\n")})};
  for (const Verdict& verdict : dialects) {
    EXPECT_TRUE(verdict.accepted()) << verdict.messages();
    EXPECT_EQ(verdict.all.config.model.precision, Precision::kFp16) << verdict.table();
  }
}

TEST_F(Case, Precision_TheTypesOfDataAgreeWithTheMode) {
  const auto with = [&](const std::string& type, const std::string& mode) {
    return check_json("{\"" + mode + "\": {\"enabled\": true},\n\"data_types\": {" + type + "}}");
  };
  EXPECT_TRUE(with("\"param_dtype\": \"bf16\"", "bf16").accepted());
  const Verdict other = with("\"param_dtype\": \"fp16\"", "bf16");
  EXPECT_TRUE(other.says("bf16.enabled: true (ds.json:1)")) << other.messages();
  EXPECT_TRUE(other.says("data_types.param_dtype: \"fp16\" (ds.json:2)")) << other.messages();
  for (const char* agreeing : {"\"buffer_dtype\": \"fp32\"", "\"buffer_dtype\": \"fp16\""}) {
    EXPECT_TRUE(with(agreeing, "fp16").accepted()) << agreeing;
  }
  const Verdict buffers = with("\"buffer_dtype\": \"bf16\"", "fp16");
  EXPECT_TRUE(
      buffers.says("data_types.buffer_dtype bf16 (ds.json:2) and fp16.enabled true "
                   "(ds.json:1): the model computes in fp16"))
      << buffers.messages();
}

TEST_F(Case, Precision_BothModesAreNamedWithTheirSources) {
  const Verdict verdict = check_json(R"({"fp16": {"enabled": true}})", {"--bf16"});
  EXPECT_TRUE(verdict.says("fp16.enabled true (ds.json:1)")) << verdict.messages();
  EXPECT_TRUE(verdict.says("bf16 true (command line)")) << verdict.messages();
}

constexpr auto kScale = R"({"fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 8,
  "loss_scale_window": 2, "hysteresis": 3, "consecutive_hysteresis": true, "min_loss_scale": 4}})";

TEST_F(Case, N30_TheDynamicScaleIsAsItIsWritten) {
  const arithmetic::LossScaleOptions expected{.fixed = 0,
                                              .initial_power = 8,
                                              .window = 2,
                                              .hysteresis = 3,
                                              .consecutive_hysteresis = true,
                                              .min_scale = 4};
  EXPECT_EQ(check_json(kScale).all.config.model.loss_scale, expected);
  const Verdict off = check_json(kScale, {"--no_fp16"});
  EXPECT_EQ(off.all.config.model.loss_scale, arithmetic::LossScaleOptions{});
  EXPECT_EQ(off.idle("fp16.hysteresis"), "fp16 is off");
}

TEST_F(Case, N34_AFixedScaleLeavesNothingToAdapt) {
  const Verdict verdict =
      check_json(R"({"fp16": {"enabled": true, "loss_scale": 128, "loss_scale_window": 500}})");
  EXPECT_EQ(verdict.all.config.model.loss_scale.fixed, 128);
  EXPECT_EQ(verdict.idle("fp16.loss_scale_window"), "fp16.loss_scale is 128: it stays");
}

TEST_F(Case, N28_AMinimumAboveTheFirstScaleIsRefused) {
  const Verdict verdict =
      check_json(R"({"fp16": {"enabled": true, "initial_scale_power": 2, "min_loss_scale": 8}})");
  EXPECT_TRUE(verdict.says("fp16.min_loss_scale 8 (ds.json:1) and fp16.initial_scale_power 2"))
      << verdict.messages();
  for (const char* wrong : {"-1", "true", "\"128\"", "1e999"}) {
    EXPECT_FALSE(
        check_json(std::string(R"({"fp16": {"enabled": true, "loss_scale": )") + wrong + "}}")
            .accepted())
        << wrong;
  }
}

TEST_F(Case, Precision_OverflowChecksOfBf16MayBeSwitchedOff) {
  const std::string json = R"({"bf16": {"enabled": true, "check_grad_overflow": false}})";
  EXPECT_FALSE(check_json(json).all.config.model.check_grad_overflow);
  const Verdict off = check_json(json, {"--no_bf16"});
  EXPECT_TRUE(off.all.config.model.check_grad_overflow);
  EXPECT_EQ(off.idle("bf16.check_grad_overflow"), "bf16 is off");
  EXPECT_EQ(check({"--max_skipped_updates", "3"}).all.config.optimizer.max_skipped, 3);
}

TEST_F(Case, Optimizer_EachTypeIsKnownByItsNames) {
  const std::pair<const char*, OptimizerKind> names[] = {
      {"AdamW", OptimizerKind::kAdamW},
      {"Adam", OptimizerKind::kAdamW},
      {"adamw_torch", OptimizerKind::kAdamW},
      {"adamw_torch_fused", OptimizerKind::kAdamW},
      {"adam_l2", OptimizerKind::kAdam},
      {"SGD", OptimizerKind::kSgd},
      {"Lion", OptimizerKind::kLion},
      {"lion_32bit", OptimizerKind::kLion},
      {"Adagrad", OptimizerKind::kAdagrad},
      {"Lamb", OptimizerKind::kLamb}};
  for (const auto& [name, kind] : names) {
    const Verdict verdict = check({"--optim", name});
    EXPECT_TRUE(verdict.accepted()) << name << verdict.messages();
    EXPECT_EQ(verdict.all.config.optimizer.kind, kind) << name;
  }
  for (const char* name :
       {"lion_8bit", "paged_lion_32bit", "paged_adamw_8bit", "rmsprop", "Muon"}) {
    EXPECT_EQ(check({"--optim", name}).of_kind(ProblemKind::kRefused).size(), 1U) << name;
  }
}

TEST_F(Case, Optimizer_AdamIsAdamWUnlessItsModeIsSwitchedOff) {
  const Verdict adam = check_json(optimizer("Adam", "\"lr\": 1e-3"));
  EXPECT_EQ(adam.all.config.optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_TRUE(adam.notices("optimizer.type Adam (ds.json:2) means AdamW, as in DeepSpeed"));
  const Verdict coupled = check_json(optimizer("Adam", "\"adam_w_mode\": false"));
  EXPECT_TRUE(coupled.accepted()) << coupled.messages();
  EXPECT_EQ(coupled.all.config.optimizer.kind, OptimizerKind::kAdam);
  EXPECT_TRUE(has(coupled.table(), "optim adam_l2 (ds.json:2 optimizer.type)")) << coupled.table();
  EXPECT_FALSE(coupled.notices("means AdamW"));
  const Verdict w = check_json(optimizer("AdamW", "\"adam_w_mode\": false"));
  EXPECT_EQ(w.all.config.optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_TRUE(has(w.idle("optimizer.params.adam_w_mode"), "as in DeepSpeed"));
  EXPECT_TRUE(check({"--optim", "adam_l2", "optimizer.params.adam_w_mode=true"})
                  .says("adam_l2 is what adam_w_mode false makes of Adam"));
}

TEST_F(Case, Optimizer_ItsParametersReachTheRun) {
  const OptimizerSettings sgd =
      check_json(optimizer("SGD", R"("momentum": 0.9, "nesterov": true, "weight_decay": 0.1)"))
          .all.config.optimizer;
  EXPECT_EQ(sgd.momentum, 0.9);
  EXPECT_TRUE(sgd.nesterov);
  const OptimizerSettings lamb =
      check_json(optimizer("Lamb",
                           R"("betas": [0.8, 0.9], "eps": 1e-6, "max_coeff": 0.3,
                              "min_coeff": 0.02, "bias_correction": false)"))
          .all.config.optimizer;
  EXPECT_EQ(lamb.beta2, 0.9);
  EXPECT_EQ(lamb.epsilon, 1e-6);
  EXPECT_EQ(lamb.max_coeff, 0.3);
  EXPECT_EQ(lamb.min_coeff, 0.02);
  EXPECT_FALSE(lamb.bias_correction);
  EXPECT_EQ(check_json(optimizer("Adagrad", "\"lr_decay\": 0.5")).all.config.optimizer.lr_decay,
            0.5);
}

TEST_F(Case, Optimizer_LionAndAdagradHaveDefaultsOfTheirOwn) {
  const Verdict lion = check({"--optim", "lion"});
  EXPECT_EQ(lion.all.config.optimizer.beta2, 0.99);
  EXPECT_EQ(lion.source("adam_beta2"), "Lion's default");
  EXPECT_EQ(check({"--optim", "lion", "--adam_beta2", "0.98"}).all.config.optimizer.beta2, 0.98);
  EXPECT_EQ(check({"--optim", "adagrad"}).all.config.optimizer.epsilon, 1e-10);
  EXPECT_EQ(check({}).all.config.optimizer.epsilon, 1e-8);
}

TEST_F(Case, Optimizer_AParameterThatTheTypeHasNotIsRefused) {
  const std::pair<const char*, const char*> wrong[] = {{"AdamW", "\"momentum\": 0.9"},
                                                       {"SGD", "\"betas\": [0.9, 0.95]"},
                                                       {"Lion", "\"eps\": 1e-6"},
                                                       {"Adagrad", "\"nesterov\": true"},
                                                       {"Lamb", "\"lr_decay\": 0.1"},
                                                       {"SGD", "\"max_coeff\": 3"}};
  for (const auto& [type, parameter] : wrong) {
    const Verdict verdict = check_json(optimizer(type, parameter));
    EXPECT_EQ(verdict.of_kind(ProblemKind::kConflict).size(), 1U) << type << verdict.messages();
    EXPECT_TRUE(verdict.says(std::string("optimizer.type ") + type + " (ds.json:2): it has no "))
        << verdict.messages();
  }
  EXPECT_TRUE(check_json(optimizer("SGD", "\"betas\": [0.9, 0.95]"))
                  .says("it takes lr, weight_decay, momentum, dampening, nesterov"));
}

TEST_F(Case, Optimizer_AParameterOfATypeThatGaveWayIsListed) {
  const Verdict verdict =
      check_json(optimizer("AdamW", "\"betas\": [0.9, 0.95]"), {"--optim", "sgd"});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.idle("adam_beta2"), "optim is sgd (command line), which has no betas");
  EXPECT_EQ(check({"--optim", "sgd", "--adam_beta1", "0.8"}).idle("adam_beta1"),
            "optim is sgd (command line), which has no betas");
}

TEST_F(Case, Optimizer_WithoutBetasOneCycleMovesTheRateAlone) {
  const std::string json = R"({"scheduler": {"type": "OneCycle", "params": {"cycle_min_lr": 1e-4,
  "cycle_max_lr": 1e-3, "cycle_max_mom": 0.95}}})";
  EXPECT_EQ(check_json(json).all.config.schedule.one_cycle.cycle_max_mom, 0.95);
  EXPECT_EQ(check_json(json, {"--optim", "sgd"}).idle("scheduler.params.cycle_max_mom"),
            "optim is sgd (command line), which has no betas");
}

TEST_F(Case, Optimizer_TransformersOldAdamWIsNoticed) {
  const Verdict verdict = check({"--optim", "adamw_hf"});
  EXPECT_EQ(verdict.all.config.optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_TRUE(verdict.notices("optim adamw_hf (command line) is computed as adamw_torch"));
}

TEST_F(Case, Optimizer_WhatDoesNotGoTogetherIsRefused) {
  EXPECT_TRUE(check_json(optimizer("SGD", "\"nesterov\": true"))
                  .says("there is no momentum to look ahead by"));
  EXPECT_TRUE(check_json(optimizer("SGD", R"("nesterov": true, "momentum": 0.9, "dampening": 0.1)"))
                  .says("has no dampening"));
  EXPECT_TRUE(
      check_json(optimizer("Lamb", R"("min_coeff": 5, "max_coeff": 2)"))
          .says("optimizer.params.min_coeff 5 (ds.json:2) and optimizer.params.max_coeff 2"));
}

}  // namespace
}  // namespace zeroth::config
