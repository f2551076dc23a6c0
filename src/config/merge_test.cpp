#include "config/merge.h"

#include "config/case_support.h"
#include "config/dialect.h"
#include "config/read_files.h"

namespace zeroth::config {
namespace {

// What a file of this dialect gives, merged over the defaults.
struct Merged {
  Gathered gathered;
  Problems problems;
  Values values = defaults_of(Command::kTrain);

  Merged& with(Dialect dialect, const std::string& name, const std::string& yaml) {
    gather(read_yaml(yaml, name, problems), dialect, name, gathered, problems);
    return *this;
  }

  Merged& done() {
    merge(gathered, values, problems);
    return *this;
  }

  [[nodiscard]] std::string messages() const {
    std::string text;
    for (const Problem& problem : problems.all()) {
      text += std::string(name_of(problem.kind)) + ": " + problem.message + "\n";
    }
    return text;
  }
};

Merged deepspeed(const std::string& yaml) {
  Merged merged;
  merged.with(Dialect::kDeepSpeed, "ds", yaml).done();
  return merged;
}

TEST(Merge, TheStrongestSourceWinsAndTheOthersAreKept) {
  Merged merged;
  merged.with(Dialect::kDeepSpeed, "ds", "gradient_accumulation_steps: 1\n")
      .with(Dialect::kRecipe, "run", "gradient_accumulation_steps: 8\n")
      .with(Dialect::kAccelerate, "acc", "gradient_accumulation_steps: 1\n")
      .done();
  EXPECT_TRUE(merged.problems.empty()) << merged.messages();
  const Setting& setting = merged.values.setting("gradient_accumulation_steps");
  EXPECT_EQ(setting.value, 8);
  EXPECT_EQ(setting.source.text, "run:1");
  ASSERT_EQ(setting.overrides.size(), 2U);
  EXPECT_EQ(setting.overrides[0].source.text, "ds:1");
  EXPECT_EQ(setting.overrides[1].source.text, "acc:1");
}

TEST(Merge, EqualSourcesMustAgree) {
  Merged merged;
  merged.with(Dialect::kDeepSpeed, "ds", "gradient_clipping: 1\nzero_optimization: {stage: 2}\n")
      .with(Dialect::kAccelerate,
            "acc",
            "deepspeed_config: {gradient_clipping: 0.5, zero_stage: 2}\n")
      .done();
  ASSERT_EQ(merged.problems.all().size(), 1U);
  EXPECT_TRUE(merged.values.in_conflict("max_grad_norm"));
  EXPECT_TRUE(has(merged.messages(), "gradient_clipping 1 (ds:1) and ")) << merged.messages();
  EXPECT_EQ(merged.values.setting("zero_stage").agreeing, std::vector<std::string>{"acc:1"});
}

TEST(Merge, AStrongerSourceDoesNotHideThatTwoFilesDiffer) {
  Merged merged;
  merged.with(Dialect::kDeepSpeed, "ds", "gradient_accumulation_steps: 2\n")
      .with(Dialect::kAccelerate, "acc", "gradient_accumulation_steps: 4\n")
      .with(Dialect::kRecipe, "run", "gradient_accumulation_steps: 8\n")
      .done();
  EXPECT_TRUE(has(merged.messages(), "two files disagree")) << merged.messages();
}

TEST(Merge, AutoLeavesTheValueToOthers) {
  Merged merged;
  merged.with(Dialect::kDeepSpeed, "ds", "train_micro_batch_size_per_gpu: auto\n")
      .with(Dialect::kRecipe, "run", "per_device_train_batch_size: 4\n")
      .done();
  EXPECT_EQ(merged.values["per_device_train_batch_size"], 4);
  EXPECT_EQ(merged.values.setting("per_device_train_batch_size").auto_in, "ds:1");
  EXPECT_TRUE(merged.problems.empty());
  EXPECT_FALSE(deepspeed("train_batch_size: auto\n").values.given("train_batch_size"));
  EXPECT_TRUE(
      has(deepspeed("steps_per_print: auto\n").messages(), "takes an integer, not \"auto\""));
}

TEST(Merge, TwoSpellingsInOneFileMustAgree) {
  EXPECT_TRUE(
      has(deepspeed("bf16: {enabled: true}\nbfloat16: {enabled: false}\n").messages(),
          "bf16.enabled: true (ds:1) vs bfloat16.enabled: false (ds:2) both say what bf16 is"));
  EXPECT_TRUE(deepspeed("bf16: {enabled: true}\nbfloat16: {enabled: true}\n").problems.empty());
}

// ---- what a file's keys may be ----

TEST(Gather, NullAndEmptyBlocksGiveNothingAndAreAccountedFor) {
  const Merged merged =
      deepspeed("zero_optimization: {}\noptimizer:\nfp16: null\ngradient_clipping: null\n");
  EXPECT_TRUE(merged.problems.empty()) << merged.messages();
  ASSERT_EQ(merged.gathered.account.size(), 4U);
  for (const Written& written : merged.gathered.account) {
    EXPECT_EQ(written.outcome, Outcome::kWithoutEffect) << written.path;
  }
  EXPECT_TRUE(merged.gathered.given.empty());
}

TEST(Gather, ABlockIsNoValueAndAValueNoBlock) {
  EXPECT_TRUE(has(deepspeed("zero_optimization: 2\n").messages(),
                  "ds:1: zero_optimization takes a block of keys, not 2"));
  EXPECT_TRUE(has(deepspeed("zero_optimization: [2]\n").messages(),
                  "zero_optimization takes a block of keys, not a list"));
  EXPECT_TRUE(has(deepspeed("train_batch_size: {rows: 2}\n").messages(),
                  "train_batch_size takes an integer, not a block"));
  EXPECT_TRUE(has(deepspeed("train_batch_size: [2]\n").messages(),
                  "train_batch_size takes an integer, not a list"));
  EXPECT_TRUE(has(deepspeed("bf16: {enabled: 'true'}\n").messages(),
                  "bf16.enabled takes true or false, not string \"true\""));
}

TEST(Gather, AKeyAtTheWrongLevelIsToldItsPlace) {
  EXPECT_TRUE(has(deepspeed("stage3_max_live_parameters: 1\n").messages(),
                  "(it belongs elsewhere: \"zero_optimization.stage3_max_live_parameters\")"));
  EXPECT_TRUE(has(deepspeed("zero_optimization: {train_batch_size: 1}\n").messages(),
                  "(it belongs elsewhere: \"train_batch_size\")"));
  EXPECT_TRUE(has(deepspeed("per_device_train_batch_size: 1\n").messages(),
                  "no key of a ds_config.json: here it is \"train_micro_batch_size_per_gpu\""));
  EXPECT_TRUE(has(deepspeed("lora_rank: 8\n").messages(),
                  "no key of a ds_config.json: it is --lora_rank on the command line"));
}

TEST(Gather, EveryLeafOfARefusedBlockIsAccountedFor) {
  const Merged merged = deepspeed("unheard_of:\n  a: 1\n  b: {c: 2, d: 3}\n");
  EXPECT_EQ(merged.problems.all().size(), 1U) << merged.messages();
  std::vector<std::string> paths;
  for (const Written& written : merged.gathered.account) {
    EXPECT_EQ(written.outcome, Outcome::kRefused);
    paths.push_back(written.path);
  }
  EXPECT_EQ(paths, (std::vector<std::string>{"unheard_of.a", "unheard_of.b.c", "unheard_of.b.d"}));
}

TEST(Gather, APasswordIsNotKept) {
  Merged merged;
  merged.with(Dialect::kRecipe, "run", "hub_token: hf_secret\n").done();
  ASSERT_EQ(merged.gathered.account.size(), 1U);
  EXPECT_EQ(merged.gathered.account[0].value, "***");
}

TEST(Dialect, EachHasItsOwnNamesAndBlocks) {
  EXPECT_NE(find_in(Dialect::kDeepSpeed, "zero_optimization.stage"), nullptr);
  EXPECT_EQ(find_in(Dialect::kDeepSpeed, "zero_stage"), nullptr);
  EXPECT_NE(find_in(Dialect::kAccelerate, "deepspeed_config.zero_stage"), nullptr);
  EXPECT_EQ(find_in(Dialect::kAccelerate, "deepspeed_config.zero_stage"),
            find_in(Dialect::kRecipe, "zero_stage"));
  EXPECT_TRUE(is_block(Dialect::kDeepSpeed, "zero_optimization.offload_param"));
  EXPECT_FALSE(is_block(Dialect::kDeepSpeed, "deepspeed_config"));
  EXPECT_TRUE(is_block(Dialect::kAccelerate, "deepspeed_config"));
}

}  // namespace
}  // namespace zeroth::config
