#include "e2e/ranks.h"

#include <algorithm>
#include <cmath>
#include <csignal>

#include "base/text.h"
#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

class Ranks : public RankTest {};

TEST_F(Ranks, ResultFilesOfStagesThatAgreeAreTheSameBytes) {
  (void)good(train("zero", cut(2, 4, 1, 0)));
  for (const int stage : {1, 3}) {
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
  const Words rows{
      "eval", "--model_name_or_path", "model", "--dataset", "rows.json", "--max_samples", "8"};
  const Json alone = json_of(rows);
  const Json together = json_of(joined(rows, {"--ranks", "4"}));
  EXPECT_NEAR(together.at("loss").get<double>() / alone.at("loss").get<double>(), 1.0, 1e-6);
  EXPECT_EQ(together.at("rows"), alone.at("rows"));
  EXPECT_EQ(together.at("target_tokens"), alone.at("target_tokens"));
}

TEST_F(Ranks, N08_EvaluationWhileTrainingDoesNotDependOnRanks) {
  std::vector<Json> alone;
  for (const Words& ranks : {cut(1, 8, 1, 0), cut(4, 1, 2, 2)}) {
    (void)good(train("out",
                     joined(ranks,
                            {"--val_size",
                             "8",
                             "--eval_strategy",
                             "steps",
                             "--eval_steps",
                             "1",
                             "--max_steps",
                             "2",
                             "--overwrite_output_dir"})));
    const std::vector<Json> evaluations = records_of(path("out"), "evaluation");
    ASSERT_EQ(evaluations.size(), 2U);
    alone = alone.empty() ? evaluations : alone;
    for (std::size_t i = 0; i < evaluations.size(); ++i) {
      EXPECT_NEAR(
          evaluations[i].at("loss").get<double>() / alone[i].at("loss").get<double>(), 1.0, 1e-6);
      EXPECT_EQ(evaluations[i].at("target_tokens"), alone[i].at("target_tokens"));
      EXPECT_EQ(evaluations[i].at("rows"), 8);
    }
  }
}

// 1000 rows, 5 a rank, 4 ranks: 50 updates whoever counts.
TEST_F(Ranks, N11_TheScheduleCountsUpdatesOfTheWholeRun) {
  Json rows = Json::array();
  for (int i = 0; i < 1000; ++i) {
    rows.push_back({{"instruction", "say"}, {"input", ""}, {"output", std::to_string(i)}});
  }
  write("thousand.json", rows.dump());
  const Words epoch{"--dataset",
                    "thousand.json",
                    "--num_train_epochs",
                    "1",
                    "--max_steps",
                    "-1",
                    "--lr_scheduler_type",
                    "cosine"};
  std::vector<double> rates;
  for (const Words& ranks : {cut(4, 5, 1, 1), cut(1, 20, 1, 0)}) {
    (void)good(train("out", joined(joined(ranks, epoch), {"--overwrite_output_dir"})));
    const std::vector<Json> updates = records_of(path("out"), "update");
    ASSERT_EQ(updates.size(), 50U);
    std::vector<double> these;
    for (const Json& update : updates) {
      these.push_back(update.at("learning_rate").get<double>());
    }
    EXPECT_EQ(these.front(), 1e-3);
    EXPECT_NEAR(these[25], 0.5e-3, 1e-9);  // after 25 updates
    // 0 is what update 51 would use.
    EXPECT_NEAR(these.back(), 0.5e-3 * (1 + std::cos(M_PI * 49 / 50)), 1e-9);
    rates = rates.empty() ? these : rates;
    EXPECT_EQ(these, rates);
  }
}

// The first prompt leaves room for a few tokens, the second for all that are asked for.
TEST_F(Ranks, G01_AnAnswerThatEndsFirstStarvesNoOtherRank) {
  write("uneven.json",
        R"([{"instruction": ")" + std::string(70, 'q') +
            R"(", "output": "a"}, {"instruction": "b", "output": "c"}])");
  const auto predict = [](const std::string& out, const Words& more) {
    return joined({"predict",
                   "--model_name_or_path",
                   "model",
                   "--dataset",
                   "uneven.json",
                   "--template",
                   "empty",
                   "--max_new_tokens",
                   "40",
                   "--per_device_eval_batch_size",
                   "1",
                   "--output_dir",
                   out},
                  more);
  };
  (void)good(predict("alone", {}));
  (void)good(predict("ranks", {"--ranks", "2", "--zero_stage", "3"}));
  const std::string answers = content_of(path("ranks/generated_predictions.jsonl"));
  EXPECT_EQ(answers, content_of(path("alone/generated_predictions.jsonl")));
  const std::vector<Json> lines = lines_of(path("ranks/generated_predictions.jsonl"));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_LT(lines[0].at("predict").get<std::string>().size(),
            lines[1].at("predict").get<std::string>().size());
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

// A run that goes on until it is stopped.
class LongRun : public RankTest {
 protected:
  void SetUp() override {
    RankTest::SetUp();
    front_ =
        testing::start(invocation(train("out", joined(cut(2, 1, 1, 2), {"--max_steps", "100000"}))),
                       path("stdout"),
                       path("stderr"));
    for (int i = 0; i < 6000 && content_of(path("out/metrics.jsonl")).empty(); ++i) {
      ::usleep(5'000);
    }
    const std::string children =
        content_of(fmt::format("/proc/{}/task/{}/children", front_, front_));
    for (const std::string& id : split(trim(children), ' ')) {
      ranks_.push_back(std::stoi(id));
    }
    ASSERT_EQ(ranks_.size(), 2U) << content_of(path("stderr"));
  }

  pid_t front_ = 0;
  std::vector<pid_t> ranks_;
};

TEST_F(LongRun, EndsSoonWhenARankIsKilledAtAnyMoment) {
  ::kill(ranks_[1], SIGKILL);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(testing::wait_for(front_), 6);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  const std::string said = content_of(path("stderr"));
  EXPECT_NE(said.find("memory error: rank 1 (process "), std::string::npos) << said;
  EXPECT_NE(said.find(" of update "), std::string::npos) << said;
}

TEST_F(LongRun, RanksStayOnProcessorsOfTheirOwn) {
  std::vector<cpu_set_t> sets(2);
  cpu_set_t own;
  ASSERT_EQ(::sched_getaffinity(0, sizeof(own), &own), 0);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    ASSERT_EQ(::sched_getaffinity(ranks_[rank], sizeof(cpu_set_t), &sets[rank]), 0);
  }
  cpu_set_t common;
  CPU_AND(&common, &sets[0], &sets[1]);
  EXPECT_EQ(CPU_COUNT(&common), CPU_COUNT(&own) >= 2 ? 0 : 1);
  ::kill(front_, SIGTERM);
  EXPECT_EQ(testing::wait_for(front_), 143);
}

TEST_F(LongRun, ASignalEndsAllRanksWithOneAnswer) {
  ::kill(front_, SIGINT);
  EXPECT_EQ(testing::wait_for(front_), 130);
  const std::string said = content_of(path("stderr"));
  const std::size_t at = said.find("stopped by SIGINT");
  ASSERT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find("stopped", at + 1), std::string::npos) << said;
  EXPECT_EQ(said.find("error", at), std::string::npos) << said;
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

}  // namespace
}  // namespace zeroth::e2e
