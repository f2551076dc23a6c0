// Published symptoms of launching: hosts, ports, ranks. What MPI does is not done here, and the
// answer says which of its options does it.
#include "config/case_support.h"

namespace zeroth::config {
namespace {

TEST_F(Case, L02_TwoSelectorsOfDevices) {
  const Verdict verdict = check({"--include", "localhost:0,1", "--num_gpus", "4"});
  EXPECT_TRUE(verdict.says("--include localhost:0,1: not supported: use one of --ranks N"))
      << verdict.messages();
  EXPECT_EQ(verdict.value("ranks"), 4);
}

TEST_F(Case, L03_AHostfileIsNeverPassedOver) {
  const Verdict verdict = check({"--hostfile", "/nope", "--train_batch_size", "64"});
  EXPECT_TRUE(verdict.says("--hostfile /nope: not supported")) << verdict.messages();
  EXPECT_TRUE(verdict.says("mpirun --hostfile FILE")) << verdict.messages();
  const Verdict yaml = check_yaml("deepspeed_config:\n  deepspeed_hostfile: /nope\n");
  EXPECT_TRUE(yaml.says("acc.yaml:2: deepspeed_config.deepspeed_hostfile /nope: not supported"))
      << yaml.messages();
}

TEST_F(Case, L05_HostsAndSlotsAreChosenByMpi) {
  for (const char* hosts : {"worker-1", "worker-1:8"}) {
    const Verdict verdict = check({"--include", hosts});
    EXPECT_TRUE(verdict.says(std::string("--include ") + hosts)) << verdict.messages();
    EXPECT_TRUE(verdict.says("mpirun --host HOST:SLOTS")) << verdict.messages();
    EXPECT_EQ(verdict.of_kind(ProblemKind::kRefused).size(), 1U);
  }
}

// There is no port that could be in use: the number names the run of a torchrun-style launcher.
TEST_F(Case, L07_NoPortIsOpened) {
  const Verdict verdict = check({"--master_port", "29500"});
  EXPECT_TRUE(verdict.accepted()) << verdict.messages();
  EXPECT_TRUE(has(verdict.idle("master_port"), "no port is opened")) << verdict.table();
  EXPECT_TRUE(check({"--master_port", "0"}).accepted());
  EXPECT_TRUE(check({"--master_port", "70000"}).says("must be at least 0 and at most 65535"));
  const auto run_name = [](const char* port) {
    return resolve_all(Command::kTrain,
                       Arguments{},
                       {{"WORLD_SIZE", "2"}, {"RANK", "0"}, {"MASTER_PORT", port}})
        .config.launch.run_name;
  };
  EXPECT_NE(run_name("29500"), run_name("29501"));
}

TEST_F(Case, L08_WithoutALauncherTheTableSaysWhyThereIsOneRank) {
  const std::string json = R"({"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": 1})";
  EXPECT_TRUE(has(check({}).table(), "world size 1 (default: no RANK in the environment"));
  const Verdict verdict = check_json(json);
  EXPECT_TRUE(verdict.says("train_batch_size 16 is not 1 x 1 x 1 = 1")) << verdict.messages();
  EXPECT_TRUE(verdict.says("ranks 1 (default: no RANK in the environment, no --ranks)"))
      << verdict.messages();
}

TEST_F(Case, L08_HalfASetOfVariablesIsAnError) {
  EXPECT_TRUE(has(train_error({}, {{"RANK", "1"}}), "RANK=1 (environment) without WORLD_SIZE"));
  EXPECT_TRUE(has(train_error({}, {{"RANK", "0"}}), "RANK=0 (environment) without WORLD_SIZE"));
  EXPECT_TRUE(
      has(train_error({}, {{"WORLD_SIZE", "4"}}), "WORLD_SIZE=4 (environment) without RANK"));
  EXPECT_TRUE(has(train_error({}, {{"OMPI_COMM_WORLD_RANK", "1"}}),
                  "OMPI_COMM_WORLD_RANK=1 (environment) without OMPI_COMM_WORLD_SIZE"));
  EXPECT_EQ(train_error({}, {{"SLURM_PROCID", "0"}}), "accepted");  // a job's batch script
  EXPECT_EQ(train_error({}, {{"WORLD_SIZE", "1"}, {"RANK", "0"}}), "accepted");
}

TEST_F(Case, L09_ATimeoutBetweenRanksIsReadAndAnswered) {
  EXPECT_TRUE(
      has(check({"--ddp_timeout", "5"}).idle("ddp_timeout"), "a living rank is waited for"));
}

TEST_F(Case, L12_SeveralHostsGoThroughMpi) {
  const std::string hosts =
      train_error({}, {{"WORLD_SIZE", "8"}, {"RANK", "0"}, {"LOCAL_WORLD_SIZE", "4"}});
  EXPECT_TRUE(has(hosts, "is a run on several hosts, which goes through MPI")) << hosts;
  EXPECT_TRUE(has(hosts, "mpirun -n 8 --map-by ppr:4:node")) << hosts;
}

TEST_F(Case, C39_APipelineWithShardedGradientsIsRefusedBeforeTheStart) {
  const auto with_stage = [&](int stage) {
    return check_json(R"({"pipeline": {"stages": 2},
  "zero_optimization": {"stage": )" +
                          std::to_string(stage) + "}}",
                      {"--world_size", "2"});
  };
  for (const int stage : {2, 3}) {
    const Verdict verdict = with_stage(stage);
    EXPECT_TRUE(verdict.says("pipeline.stages 2 (ds.json:1) needs zero stage 0 or 1 (got " +
                             std::to_string(stage) + "): zero_optimization.stage"))
        << verdict.messages();
    EXPECT_EQ(verdict.of_kind(ProblemKind::kConflict).size(), 1U);
  }
  EXPECT_TRUE(with_stage(1).accepted());
  EXPECT_NE(with_stage(1).planned("pipeline.stages"), "");
}

TEST_F(Case, C40_SplitMatricesWithShardedWeightsAreRefusedBeforeTheStart) {
  const Verdict verdict =
      check_json(R"({"tensor_parallel": {"autotp_size": 2}, "zero_optimization": {"stage": 3}})",
                 {"--world_size", "4"});
  EXPECT_TRUE(
      verdict.says("tensor_parallel.autotp_size 2 (ds.json:1) needs zero stage 0, 1 or 2 "
                   "(got 3): zero_optimization.stage 3 (ds.json:1)"))
      << verdict.messages();
}

}  // namespace
}  // namespace zeroth::config
