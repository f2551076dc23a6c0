// Published symptoms of single values: types, numeric precision of the run, keys of another stage.
#include "config/case_support.h"

namespace zeroth::config {
namespace {

TEST_F(Case, C10_SizesThatFollowFromTheModelAreIntegers) {
  (void)file("model/config.json", R"({"hidden_size": 4096})");
  const Verdict verdict = check_json(R"({"zero_optimization": {"stage": 3,
  "stage3_prefetch_bucket_size": "auto",
  "stage3_param_persistence_threshold": "auto",
  "reduce_bucket_size": "auto"}})",
                                     {"--model", folder() + "/model", "--world_size", "2"});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.all.config.zero.prefetch_elements, 15099494);
  EXPECT_EQ(verdict.all.config.zero.persistence_elements, 40960);
  EXPECT_TRUE(has(verdict.table(),
                  "auto in ds.json:2, filled from 0.9 x hidden_size squared, hidden_size 4096 of "))
      << verdict.table();
  EXPECT_TRUE(
      has(verdict.outcome("zero_optimization.stage3_param_persistence_threshold"), "40960"));
  EXPECT_EQ(verdict.value("reduce_bucket_size"), 16777216);
}

TEST_F(Case, C10_AnIntegerMayHaveAnExponentButNoFraction) {
  const auto with = [&](const char* size) {
    return check_json(std::string(R"({"zero_optimization": {"reduce_bucket_size": )") + size + "}}",
                      {"--world_size", "2"});
  };
  EXPECT_EQ(with("5e8").value("reduce_bucket_size"), 500000000);
  EXPECT_EQ(with("5e8").value("reduce_bucket_size").type(), Json::value_t::number_integer);
  for (const char* wrong : {"1.5", "1e30", "\"5e8\""}) {
    const Verdict verdict = with(wrong);
    EXPECT_TRUE(verdict.says("zero_optimization.reduce_bucket_size takes an integer, not"))
        << verdict.messages();
    EXPECT_EQ(verdict.of_kind(ProblemKind::kType).size(), 1U);
  }
}

TEST_F(Case, C30_AFlagThatNobodyGaveIsNoSource) {
  const std::string json = R"({"fp16": {"enabled": true}})";
  const Verdict verdict = check_json(json);
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.all.config.model.precision, Precision::kFp16);
  EXPECT_EQ(verdict.setting("fp16").spelled, "fp16.enabled");
}

TEST_F(Case, C30_AFlagThatSomebodyGaveOverridesTheFile) {
  const std::string json = R"({"fp16": {"enabled": true}})";
  const Verdict verdict = check_json(json, {"--fp16", "false"});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_TRUE(has(verdict.table(), "fp16 false (command line, overrides ds.json:1: true)"))
      << verdict.table();
  EXPECT_EQ(verdict.all.config.model.precision, Precision::kFp32);
  EXPECT_EQ(verdict.outcome("fp16.enabled"), "overridden: command line");
  EXPECT_TRUE(check_json(json, {"--fp16", "false", "--strict"})
                  .says("fp16 false (command line) overrides true (ds.json:1)"));
}

TEST_F(Case, C31_PrecisionInTwoFilesMustAgree) {
  const std::string ds = file("ds.json", R"({"bf16": {"enabled": true}})");
  const Verdict verdict =
      check_yaml("mixed_precision: 'no'\ndowncast_bf16: 'no'\n", {"--deepspeed", ds});
  EXPECT_TRUE(
      verdict.says("bf16: mixed_precision no (acc.yaml:1) and bf16.enabled true (ds.json:1)"))
      << verdict.messages();
  EXPECT_EQ(verdict.of_kind(ProblemKind::kConflict).size(), 1U) << verdict.messages();
  const Verdict alone = check_yaml("downcast_bf16: 'no'\n", {"--deepspeed", ds});
  EXPECT_TRUE(alone.accepted()) << alone.messages();
  EXPECT_EQ(alone.all.config.model.precision, Precision::kBf16);
}

TEST_F(Case, C31_EightBitsAreRefusedByName) {
  for (const Verdict& verdict :
       {check_yaml("mixed_precision: fp8\n"), check({"--mixed_precision", "fp8"})}) {
    EXPECT_EQ(verdict.of_kind(ProblemKind::kRefused).size(), 1U) << verdict.messages();
    EXPECT_TRUE(
        verdict.says("mixed_precision fp8: not supported: no product is computed in 8 bits"))
        << verdict.messages();
  }
  EXPECT_EQ(check_yaml("mixed_precision: fp9\n").of_kind(ProblemKind::kType).size(), 1U);
}

constexpr auto kStageTwo = R"({"zero_optimization": {"stage": 2,
  "stage3_param_persistence_threshold": 0,
  "offload_param": {"device": "cpu"}}})";

TEST_F(Case, C37_KeysOfStageThreeAreListedBelowIt) {
  const Verdict verdict = check_json(kStageTwo, {"--world_size", "2"});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  for (const char* key : {"zero_optimization.stage3_param_persistence_threshold",
                          "zero_optimization.offload_param.device"}) {
    EXPECT_EQ(verdict.idle(key), "needs stage 3: no parameter memory is saved") << key;
    EXPECT_TRUE(has(verdict.table(), key));
  }
  const Verdict strict = check_json(kStageTwo, {"--world_size", "2", "--strict"});
  EXPECT_TRUE(
      strict.says("zero_optimization.offload_param.device cpu has no effect: needs stage 3"))
      << strict.messages();
  const Verdict yaml = check_yaml(
      "num_processes: 2\ndeepspeed_config:\n  zero_stage: 2\n  offload_param_device: cpu\n");
  EXPECT_TRUE(yaml.accepted()) << yaml.messages();
  EXPECT_EQ(yaml.idle("zero_optimization.offload_param.device"),
            "needs stage 3: no parameter memory is saved");
}

TEST_F(Case, C37_AnOffloadOfNoneOffloadsNothing) {
  const Verdict verdict =
      check_json(R"({"zero_optimization": {"stage": 2, "offload_param": {"device": "none"}}})",
                 {"--world_size", "2"});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.all.config.offload, OffloadSettings{});
}

TEST_F(Case, C38_ABlockForRecomputationThatIsOffIsListed) {
  const Verdict verdict = check_json(R"({"activation_checkpointing": {
  "partition_activations": true, "cpu_checkpointing": true}})");
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  for (const char* key : {"activation_checkpointing.partition_activations",
                          "activation_checkpointing.cpu_checkpointing"}) {
    EXPECT_TRUE(has(verdict.idle(key),
                    "activation_checkpointing is given but gradient checkpointing is off"))
        << key;
    EXPECT_TRUE(has(verdict.idle(key), "pass --gradient_checkpointing")) << key;
  }
}

TEST_F(Case, C38_WithRecomputationOnEachKeySaysWhatBecomesOfIt) {
  const Verdict verdict = check_json(R"({"activation_checkpointing": {
  "partition_activations": true, "cpu_checkpointing": true}})",
                                     {"--gradient_checkpointing"});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_TRUE(verdict.all.config.finetune.gradient_checkpointing);
  EXPECT_TRUE(
      has(verdict.idle("activation_checkpointing.partition_activations"), "recomputed one by one"));
  EXPECT_NE(verdict.planned("activation_checkpointing.cpu_checkpointing"), "");
}

}  // namespace
}  // namespace zeroth::config
