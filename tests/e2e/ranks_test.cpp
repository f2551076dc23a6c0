#include <algorithm>
#include <csignal>

#include "base/text.h"
#include "e2e/support.h"
#include <fmt/format.h>
#include <unistd.h>

// Several ranks as real processes: by --ranks, by mpirun, and as a torchrun-style launcher starts
// them.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

Words cut(int ranks, int micro, int accumulation, int stage) {
  return {"--ranks",
          std::to_string(ranks),
          "--per_device_train_batch_size",
          std::to_string(micro),
          "--gradient_accumulation_steps",
          std::to_string(accumulation),
          "--zero_stage",
          std::to_string(stage)};
}

class Ranks : public EndToEnd {
 protected:
  // The weights that a cut of the same global batch of 8 rows leaves.
  Tensors weights_of(const std::string& out, const Words& cut_words) const {
    (void)good(train(out, joined(cut_words, {"--finetuning_type", "full"})));
    return tensors_of(path(out) / "model.safetensors");
  }

  // One rank for each of `hosts`; ranks of different names count as ranks of different hosts.
  testing::Outcome under_mpirun(const Words& hosts, const Words& words) const {
    testing::Invocation invocation = this->invocation(words);
    Words line{
        "/usr/bin/env", "mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"};
    for (const std::string& host : hosts) {
      if (host != hosts.front() || line.back() != "none") {
        line.emplace_back(":");
      }
      line = joined(joined(line, {"-n", "1", "/usr/bin/env", "ZEROTH_HOST_ID=" + host}),
                    invocation.arguments);
    }
    invocation.arguments = line;
    return testing::run(invocation);
  }
};

TEST_F(Ranks, N20_EveryStageAndCutGivesTheSameWeights) {
  const Tensors alone = weights_of("alone", cut(1, 8, 1, 0));
  for (int stage = 0; stage <= 3; ++stage) {
    const std::string out = fmt::format("stage{}", stage);
    EXPECT_LT(relative_distance(weights_of(out, cut(2, 2, 2, stage)), alone), 1e-5) << out;
  }
  EXPECT_LT(relative_distance(weights_of("four", cut(4, 1, 2, 2)), alone), 1e-5);
}

TEST_F(Ranks, ResultFilesOfStagesThatAgreeAreTheSameBytes) {
  (void)good(train("zero", cut(2, 4, 1, 0)));
  for (int stage = 1; stage <= 3; ++stage) {
    const std::string out = fmt::format("stage{}", stage);
    (void)good(train(out, cut(2, 4, 1, stage)));
    EXPECT_EQ(content_of(path(out) / "adapter_model.safetensors"),
              content_of(path("zero/adapter_model.safetensors")))
        << out;
  }
}

TEST_F(Ranks, RecordsSpeakOfAllRanks) {
  (void)good(train("out", joined(cut(2, 1, 4, 2), {"--log_micro_steps"})));
  const auto updates = records_of(path("out"), "update");
  ASSERT_EQ(updates.size(), 3U);
  EXPECT_EQ(updates[0].at("rows"), 8);
  EXPECT_EQ(updates[0].at("micro_steps"), 4);
  const auto micro_steps = records_of(path("out"), "micro_step");
  ASSERT_EQ(micro_steps.size(), 12U);
  EXPECT_EQ(micro_steps[0].at("rows"), 2);
  std::int64_t targets = 0;
  for (int i = 0; i < 4; ++i) {
    targets += micro_steps[static_cast<std::size_t>(i)].at("target_tokens").get<std::int64_t>();
  }
  EXPECT_EQ(updates[0].at("target_tokens"), targets);
}

TEST_F(Ranks, D21_MoreRanksThanRowsInTheLastWindowDoNotHang) {
  // 3 rows on 4 ranks: one rank has none.
  const testing::Outcome outcome =
      good(train("out",
                 joined(cut(4, 1, 1, 3),
                        {"--max_samples", "3", "--max_steps", "2", "--finetuning_type", "full"})));
  EXPECT_EQ(records_of(path("out"), "update").size(), 2U);
  EXPECT_LT(outcome.seconds, 60);
}

TEST_F(Ranks, N08_EvaluationDoesNotDependOnRanks) {
  const Json alone = json_of({"eval", "--model_name_or_path", "model", "--dataset", "rows.json"});
  for (const char* ranks : {"2", "3"}) {
    const Json together = json_of(
        {"eval", "--model_name_or_path", "model", "--dataset", "rows.json", "--ranks", ranks});
    EXPECT_NEAR(together.at("loss").get<double>() / alone.at("loss").get<double>(), 1.0, 1e-6);
    EXPECT_EQ(together.at("rows"), alone.at("rows"));
    EXPECT_EQ(together.at("target_tokens"), alone.at("target_tokens"));
  }
}

TEST_F(Ranks, G02_PredictionsKeepTheOrderOfTheFileOnAnyRanks) {
  const auto predict = [](const std::string& out, const char* ranks) {
    return Words{"predict",
                 "--model_name_or_path",
                 "model",
                 "--dataset",
                 "rows.json",
                 "--max_samples",
                 "7",
                 "--max_new_tokens",
                 "5",
                 "--per_device_eval_batch_size",
                 "2",
                 "--output_dir",
                 out,
                 "--ranks",
                 ranks,
                 "--zero_stage",
                 "3"};
  };
  EXPECT_EQ(json_of(predict("one", "1")).at("rows"), 7);
  EXPECT_EQ(json_of(predict("two", "2")).at("rows"), 7);
  EXPECT_EQ(content_of(path("two/generated_predictions.jsonl")),
            content_of(path("one/generated_predictions.jsonl")));
}

TEST_F(Ranks, AnErrorThatAllMeetIsToldOnce) {
  write("broken.json", "[{]");
  const testing::Outcome outcome =
      zeroth(train("out", joined(cut(2, 1, 1, 0), {"--dataset", "broken.json"})));
  EXPECT_EQ(outcome.exit_code, 3);
  std::size_t told = 0;
  for (std::size_t at = outcome.errors.find("there:"); at != std::string::npos;
       at = outcome.errors.find("there:", at + 1)) {
    ++told;
  }
  EXPECT_LE(told, 1U) << outcome.errors;
  EXPECT_NE(outcome.errors.find("broken.json:1:3"), std::string::npos) << outcome.errors;
}

TEST_F(Ranks, TheOthersEndSoonWhenOneIsKilled) {
  const testing::Invocation invocation =
      this->invocation(train("out", joined(cut(2, 1, 1, 2), {"--max_steps", "100000"})));
  const pid_t front = testing::start(invocation, path("stdout"), path("stderr"));
  // Its children are the ranks; the last one started is rank 1.
  std::string children;
  for (int i = 0; i < 600 && !content_of(path("stderr")).ends_with("left\n"); ++i) {
    ::usleep(50'000);
  }
  children = content_of(fmt::format("/proc/{}/task/{}/children", front, front));
  const auto ids = split(trim(children), ' ');
  ASSERT_EQ(ids.size(), 2U) << children;
  ::kill(std::stoi(ids.back()), SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(testing::wait_for(front), 6);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(15));
  EXPECT_NE(content_of(path("stderr")).find("rank 1"), std::string::npos)
      << content_of(path("stderr"));
}

TEST_F(Ranks, MpirunGivesTheSameWeightsAlsoBetweenHosts) {
  if (testing::run({.arguments = {"/usr/bin/env", "mpirun", "--version"}}).exit_code != 0) {
    GTEST_SKIP() << "needs mpirun";
  }
  const Words job{"--per_device_train_batch_size",
                  "2",
                  "--gradient_accumulation_steps",
                  "2",
                  "--zero_stage",
                  "2",
                  "--finetuning_type",
                  "full"};
  const Tensors by_ranks = weights_of("ranks", cut(2, 2, 2, 2));
  for (const Words& hosts : {Words{"a", "a"}, Words{"a", "b"}}) {
    const std::string out = "mpi_" + hosts.back();
    const testing::Outcome outcome = under_mpirun(hosts, train(out, job));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
    EXPECT_EQ(tensors_of(path(out) / "model.safetensors"), by_ranks) << out;
  }
}

TEST_F(Ranks, LaunchersThatContradictAreRefused) {
  testing::Invocation invocation = this->invocation(train("out"));
  invocation.environment = {"WORLD_SIZE=4"};
  testing::Outcome outcome = testing::run(invocation);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.errors.find("WORLD_SIZE=4 (environment) without RANK"), std::string::npos)
      << outcome.errors;
  invocation.environment = {"WORLD_SIZE=4", "RANK=0", "LOCAL_WORLD_SIZE=2"};
  outcome = testing::run(invocation);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.errors.find("mpirun -n 4"), std::string::npos) << outcome.errors;
  invocation.environment = {
      "WORLD_SIZE=4", "RANK=0", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1"};
  outcome = testing::run(invocation);
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_NE(outcome.errors.find("two launchers disagree"), std::string::npos) << outcome.errors;
}

TEST_F(Ranks, ATorchrunStyleLauncherStartsARun) {
  std::vector<pid_t> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    testing::Invocation invocation = this->invocation(train("out", {"--zero_stage", "1"}));
    invocation.environment = {"WORLD_SIZE=2",
                              fmt::format("RANK={}", rank),
                              fmt::format("LOCAL_RANK={}", rank),
                              "LOCAL_WORLD_SIZE=2",
                              "MASTER_ADDR=localhost",
                              fmt::format("MASTER_PORT={}", ::getpid())};
    const std::string name = fmt::format("rank{}", rank);
    ranks.push_back(testing::start(invocation, path(name + ".out"), path(name + ".err")));
  }
  for (const pid_t rank : ranks) {
    EXPECT_EQ(testing::wait_for(rank), 0);
  }
  EXPECT_TRUE(fs::exists(path("out/adapter_model.safetensors"))) << content_of(path("rank0.err"));
  EXPECT_EQ(content_of(path("rank1.err")), "");
}

TEST_F(Ranks, ARankThatNeverStartsIsNamed) {
  testing::Invocation invocation = this->invocation(train("out", {"--start_timeout", "1"}));
  invocation.environment = {
      "WORLD_SIZE=2", "RANK=0", "LOCAL_RANK=0", fmt::format("MASTER_PORT={}", ::getpid())};
  const testing::Outcome outcome = testing::run(invocation);
  EXPECT_EQ(outcome.exit_code, 5) << outcome.errors;
  EXPECT_NE(outcome.errors.find("rank 1"), std::string::npos) << outcome.errors;
  EXPECT_LT(outcome.seconds, 20);
}

}  // namespace
}  // namespace zeroth::e2e
