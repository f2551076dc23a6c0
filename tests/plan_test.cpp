#include <algorithm>

#include "base/file.h"
#include "process.h"
#include <gtest/gtest.h>

// `zeroth plan --write`: a file that others go on with.
namespace zeroth::testing {
namespace {

namespace fs = std::filesystem;

constexpr auto kConfigJson =
    R"({"model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
 "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
 "vocab_size": 128256, "max_position_embeddings": 8192})";

class PlanCommand : public ::testing::Test {
 protected:
  void SetUp() override { write_file_atomically(path("config.json"), kConfigJson); }

  [[nodiscard]] fs::path path(const std::string& name) const { return folder_.path() / name; }

  [[nodiscard]] Outcome zeroth(std::vector<std::string> words) const {
    words.insert(words.begin(), ZEROTH_PROGRAM);
    return run({.arguments = std::move(words),
                .input = "",
                .environment = {},
                .working_folder = folder_.path()});
  }

  // Full fine-tuning on 64 devices, 256 rows an update.
  [[nodiscard]] Outcome plan_on(const std::string& memory,
                                std::vector<std::string> more = {},
                                const std::string& file = "ds.json") const {
    std::vector<std::string> words{"plan",
                                   "--model_config=config.json",
                                   "--finetuning_type=full",
                                   "--bf16",
                                   "--ranks=64",
                                   "--per_device_train_batch_size=2",
                                   "--gradient_accumulation_steps=2",
                                   "--cutoff_len=1024",
                                   "--write=" + file,
                                   "--device_memory=" + memory};
    words.insert(words.end(), more.begin(), more.end());
    return zeroth(std::move(words));
  }

  [[nodiscard]] std::string written() const { return read_file(path("ds.json"), ErrorKind::kDisk); }

 private:
  TemporaryFolder folder_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(PlanCommand, WritesTheLeastShardingThatFits) {
  const Outcome plan = plan_on("50GiB");
  EXPECT_EQ(plan.exit_code, 0) << plan.errors;
  EXPECT_TRUE(has(plan.output, "written: ds.json")) << plan.output;
  EXPECT_TRUE(has(written(), "\"stage\": 2")) << written();
  const Outcome check =
      zeroth({"check", "--deepspeed", "ds.json", "--world_size", "64", "--strict"});
  EXPECT_EQ(check.exit_code, 0) << check.output;
  EXPECT_TRUE(has(check.output, "global batch 256 = 2 x 2 x 64")) << check.output;
}

TEST_F(PlanCommand, NeverReplacesAFileUnasked) {
  write_file_atomically(path("ds.json"), "mine");
  const Outcome refused = plan_on("50GiB");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(has(refused.errors, "--write ds.json: the file is there already")) << refused.errors;
  EXPECT_EQ(written(), "mine");
  // What may be replaced in a run's output folder is another matter.
  EXPECT_EQ(plan_on("50GiB", {"--overwrite_output_dir"}).exit_code, 2);
  EXPECT_EQ(written(), "mine");
  EXPECT_EQ(plan_on("50GiB", {"--overwrite"}).exit_code, 0);
  EXPECT_TRUE(has(written(), "zero_optimization"));
}

constexpr auto kSettings =
    R"({"train_batch_size": 32, "bf16": {"enabled": true},
 "optimizer": {"type": "Lion", "params": {"lr": 1e-3}},
 "scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}},
 "zero_optimization": {"stage": 3, "stage3_prefetch_bucket_size": 0, "overlap_comm": false},
 "data_types": {"grad_accum_dtype": "bf16"}})";

// The file that is written needs the memory that its header and the plan say.
TEST_F(PlanCommand, WritesAFileWhosePlanIsTheSame) {
  write_file_atomically(path("asked.json"), kSettings);
  const auto plan = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"plan",
                                   "--model_config=config.json",
                                   "--finetuning_type=full",
                                   "--ranks=4",
                                   "--device_memory=80GB"};
    words.insert(words.end(), more.begin(), more.end());
    return zeroth(std::move(words));
  };
  const Outcome first = plan({"--deepspeed=asked.json", "--write=ds.json"});
  EXPECT_EQ(first.exit_code, 0) << first.errors;
  EXPECT_TRUE(has(first.output, "(72.90 GiB)")) << first.output;
  EXPECT_TRUE(has(written(), "A rank needs 72.90 GiB at the most")) << written();
  const Outcome second = plan({"--deepspeed=ds.json"});
  EXPECT_TRUE(has(second.output, "fits: 72.90 GiB of 74.51 GiB")) << second.output;
}

TEST_F(PlanCommand, TellsTheCommandThatChecksItsFile) {
  EXPECT_EQ(plan_on("50GiB").exit_code, 0);
  EXPECT_TRUE(has(written(),
                  "zeroth check --deepspeed ds.json --world_size 64 --finetuning_type full "
                  "--cutoff_len 1024\n"))
      << written();
}

TEST_F(PlanCommand, RefusesAFolderThatIsNotThereBeforeItPlans) {
  const Outcome refused = plan_on("50GiB", {}, "no/ds.json");
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_EQ(refused.output, "");
  EXPECT_TRUE(has(refused.errors, "--write no/ds.json: there is no folder no")) << refused.errors;
  const Outcome folder = plan_on("50GiB", {"--overwrite"}, ".");
  EXPECT_EQ(folder.exit_code, 2);
  EXPECT_TRUE(has(folder.errors, "--write .: it is a folder")) << folder.errors;
}

TEST_F(PlanCommand, WritesNothingWhereNothingFits) {
  const Outcome plan = plan_on("4GiB");
  EXPECT_EQ(plan.exit_code, 6);
  EXPECT_TRUE(has(plan.output, "nothing that is built fits")) << plan.output;
  EXPECT_TRUE(has(plan.errors, "nothing was written")) << plan.errors;
  EXPECT_FALSE(fs::exists(path("ds.json")));
}

}  // namespace
}  // namespace zeroth::testing
