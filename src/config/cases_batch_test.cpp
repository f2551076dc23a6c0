// Published symptoms of batch sizes and of ranks that are counted wrongly.
#include "config/case_support.h"

namespace zeroth::config {
namespace {

std::string ranks(int count) {
  return std::to_string(count);
}

TEST_F(Case, C08_TheCommandLineBeatsTheWizardsAccumulation) {
  const std::string yaml = "distributed_type: MULTI_CPU\ngradient_accumulation_steps: 1\n";
  const Arguments eight{"--gradient_accumulation_steps", "8"};
  const Verdict verdict = check_yaml(yaml, eight);
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.value("gradient_accumulation_steps"), 8);
  EXPECT_TRUE(
      has(verdict.table(), "gradient_accumulation_steps 8 (command line, overrides acc.yaml:2: 1)"))
      << verdict.table();
  EXPECT_EQ(verdict.outcome("gradient_accumulation_steps"), "in force");

  const Verdict strict = check_yaml(yaml, {"--gradient_accumulation_steps", "8", "--strict"});
  EXPECT_TRUE(strict.says("gradient_accumulation_steps 8 (command line) overrides 1 (acc.yaml:2)"))
      << strict.messages();

  const Verdict automatic = check_yaml("gradient_accumulation_steps: auto\n", eight);
  EXPECT_EQ(automatic.value("gradient_accumulation_steps"), 8);
  EXPECT_TRUE(automatic.accepted()) << automatic.messages();
}

TEST_F(Case, C13_AutoIsFilledFromTheDefaultsWhereNobodySaysMore) {
  const Verdict verdict = check_json(R"({"train_micro_batch_size_per_gpu": "auto",
  "gradient_accumulation_steps": "auto"})");
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.value("per_device_train_batch_size"), 8);
  EXPECT_EQ(verdict.value("gradient_accumulation_steps"), 1);
  EXPECT_TRUE(has(verdict.table(),
                  "per_device_train_batch_size 8 (auto in ds.json:1, filled from default)"))
      << verdict.table();
  EXPECT_TRUE(has(verdict.table(),
                  "gradient_accumulation_steps 1 (auto in ds.json:2, filled from default)"))
      << verdict.table();
}

TEST_F(Case, C17_ABatchSmallerThanTheRanksIsRefused) {
  const Verdict verdict = check_json(R"({"train_batch_size": 4})", {"--world_size", "8"});
  EXPECT_TRUE(verdict.says("train_batch_size 4 is smaller than dp 8")) << verdict.messages();
  EXPECT_TRUE(verdict.says("mend: --train_batch_size 8 gives 8 = 1 x 1 x 8")) << verdict.messages();
  EXPECT_EQ(verdict.of_kind(ProblemKind::kBatch).size(), 1U);
}

TEST_F(Case, C18_ABatchIsNeverRoundedDown) {
  const Verdict verdict = check_json(
      R"({"train_batch_size": 10, "train_micro_batch_size_per_gpu": 1})", {"--world_size", "4"});
  EXPECT_EQ(verdict.of_kind(ProblemKind::kBatch).size(), 1U);
  EXPECT_TRUE(verdict.says("train_batch_size 10 (ds.json:1)")) << verdict.messages();
  EXPECT_TRUE(verdict.says("--train_batch_size 8 gives 8 = 1 x 2 x 4")) << verdict.messages();
  EXPECT_TRUE(verdict.says("--train_batch_size 12 gives 12 = 1 x 3 x 4")) << verdict.messages();
}

struct Triple {
  int train;
  int micro;
  int accumulation;
};

void expect_triple(const Verdict& verdict, const Triple& wanted) {
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.value("train_batch_size"), wanted.train);
  EXPECT_EQ(verdict.value("per_device_train_batch_size"), wanted.micro);
  EXPECT_EQ(verdict.value("gradient_accumulation_steps"), wanted.accumulation);
}

TEST_F(Case, C19a_TrainBatchAlone) {
  const Verdict verdict = check_json(R"({"train_batch_size": 32})", {"--world_size", "4"});
  expect_triple(verdict, {.train = 32, .micro = 8, .accumulation = 1});
  EXPECT_TRUE(has(verdict.table(), "per_device_train_batch_size 8 (derived: 32 / (1 x 4))"))
      << verdict.table();
}

TEST_F(Case, C19b_MicroBatchAlone) {
  const Verdict verdict =
      check_json(R"({"train_micro_batch_size_per_gpu": 4})", {"--world_size", "4"});
  expect_triple(verdict, {.train = 16, .micro = 4, .accumulation = 1});
  EXPECT_TRUE(has(verdict.table(), "train_batch_size 16 (4 x 1 x 4)")) << verdict.table();
}

TEST_F(Case, C19c_TrainBatchAndAccumulation) {
  const Verdict verdict = check_json(
      R"({"train_batch_size": 32, "gradient_accumulation_steps": 2})", {"--world_size", "4"});
  expect_triple(verdict, {.train = 32, .micro = 4, .accumulation = 2});
  EXPECT_TRUE(has(verdict.source("per_device_train_batch_size"), "derived: 32 / (2 x 4)"));
}

TEST_F(Case, C19d_TrainBatchAndMicroBatch) {
  const Verdict verdict = check_json(
      R"({"train_batch_size": 32, "train_micro_batch_size_per_gpu": 2})", {"--world_size", "4"});
  expect_triple(verdict, {.train = 32, .micro = 2, .accumulation = 4});
  EXPECT_TRUE(has(verdict.source("gradient_accumulation_steps"), "derived: 32 / (2 x 4)"));
}

TEST_F(Case, C19e_AccumulationAloneInAFileSaysTooLittle) {
  const Verdict verdict =
      check_json(R"({"gradient_accumulation_steps": 2})", {"--world_size", "4"});
  EXPECT_TRUE(verdict.says("give train_batch_size or train_micro_batch_size_per_gpu"))
      << verdict.messages();
  EXPECT_TRUE(verdict.says("gradient_accumulation_steps 2 (ds.json:1)")) << verdict.messages();
}

TEST_F(Case, C19f_NothingAtAllIsTheDefaultsShownAsSuch) {
  const Verdict verdict = check_json("{}", {"--world_size", "4"});
  expect_triple(verdict, {.train = 32, .micro = 8, .accumulation = 1});
  EXPECT_TRUE(has(verdict.table(), "per_device_train_batch_size 8 (default)")) << verdict.table();
  EXPECT_TRUE(has(verdict.table(), "gradient_accumulation_steps 1 (default)")) << verdict.table();
}

TEST_F(Case, C20_TensorParallelRanksShareTheirRows) {
  const std::string json = R"({"tensor_parallel": {"autotp_size": 2},
  "train_micro_batch_size_per_gpu": 4, "gradient_accumulation_steps": 1})";
  const Verdict verdict = check_json(json, {"--world_size", ranks(16)});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.all.config.grid.dp, 8);
  EXPECT_EQ(verdict.all.config.grid.tp, 2);
  EXPECT_EQ(verdict.all.config.global_rows(), 32);
  EXPECT_EQ(verdict.value("train_batch_size"), 32);
  EXPECT_TRUE(has(batch_line(verdict.all.config), "global batch 32 = 4 x 1 x 8"))
      << batch_line(verdict.all.config);
  EXPECT_NE(verdict.planned("tensor_parallel.autotp_size"), "");
  EXPECT_TRUE(has(train_error({"--deepspeed", file("ds.json", json), "--ranks", "16"}),
                  "ds.json:1: tensor_parallel.autotp_size 2: not supported yet"));
}

TEST_F(Case, C20_ARankMayNotBeLeftOver) {
  const Verdict verdict =
      check_json(R"({"tensor_parallel": {"autotp_size": 4}})", {"--world_size", "6"});
  EXPECT_TRUE(verdict.says("world size 6 (--world_size) is not a multiple of the 4 ranks"))
      << verdict.messages();
}

TEST_F(Case, C21_SequenceParallelRanksShareTheirRows) {
  const std::string json = R"({"sequence_parallel_size": 4,
  "train_micro_batch_size_per_gpu": 1, "gradient_accumulation_steps": 2})";
  const Verdict verdict = check_json(json, {"--world_size", ranks(8), "--cutoff_len", "2048"});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.all.config.grid.dp, 2);
  EXPECT_EQ(verdict.all.config.global_rows(), 4);
  EXPECT_EQ(verdict.value("cutoff_len"), 2048);
  EXPECT_TRUE(has(batch_line(verdict.all.config), "global batch 4 = 1 x 2 x 2"));
  EXPECT_TRUE(has(train_error({"--deepspeed", file("ds.json", json), "--ranks", "8"}),
                  "sequence_parallel_size 4: not supported yet"));
}

TEST_F(Case, C21_PipelineStagesShareTheirRows) {
  const Verdict verdict =
      check_json(R"({"pipeline": {"stages": 4}, "train_micro_batch_size_per_gpu": 2})",
                 {"--world_size", ranks(8)});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.all.config.grid.pp, 4);
  EXPECT_EQ(verdict.all.config.grid.dp, 2);
  EXPECT_EQ(verdict.value("train_batch_size"), 4);
}

TEST_F(Case, C33_TheCommandLineBeatsTheFilesNumberOfProcesses) {
  const Verdict verdict = check_yaml("num_processes: 1\n", {"--num_processes", "4"});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_EQ(verdict.value("ranks"), 4);
  EXPECT_TRUE(has(verdict.table(), "ranks 4 (command line, overrides acc.yaml:1: 1)"))
      << verdict.table();
  const Verdict other_machine = check_yaml("num_processes: 1\n", {"--world_size", "4"});
  EXPECT_TRUE(has(other_machine.table(), "ranks 4 (--world_size, overrides acc.yaml:1: 1)"))
      << other_machine.table();
}

TEST_F(Case, C33_ALauncherAndAFileThatCountDifferentlyAreAnError) {
  const std::string yaml = file("acc.yaml", "num_processes: 2\n");
  const Environment four{{"WORLD_SIZE", "4"}, {"RANK", "0"}};
  const std::string error = train_error({"--accelerate_config", yaml}, four);
  EXPECT_TRUE(has(error, "num_processes 2 (acc.yaml:1), but WORLD_SIZE=4 (environment)")) << error;
  EXPECT_EQ(train_error({"--accelerate_config", file("acc.yaml", "num_processes: 4\n")}, four),
            "accepted");
}

}  // namespace
}  // namespace zeroth::config
