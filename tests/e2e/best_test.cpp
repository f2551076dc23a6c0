#include <csignal>
#include <map>

#include "e2e/checkpoints.h"
#include <unistd.h>

// Evaluations of runs that are saved, stopped and gone on with: none is waited for, none is lost,
// and the best one that was saved is the result.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

class Best : public Checkpoints {
 protected:
  void SetUp() override {
    Checkpoints::SetUp();
    write(
        "unlike.json",
        R"([{"instruction": "Qq", "output": "zxqj vkw zxqj vkw"}, {"instruction": "Jj", "output": "wvxq"}])");
  }

  // Its rate only grows: update 2, where nothing is saved, has the best evaluation.
  void make_run_past_its_best(const std::string& out) const {
    (void)good(long_run(out, past_best({"--eval_dataset", "unlike.json"})));
  }

  [[nodiscard]] static Words past_best(const Words& more) {
    return joined({"--eval_strategy",
                   "steps",
                   "--eval_steps",
                   "2",
                   "--load_best_model_at_end",
                   "--finetuning_type",
                   "full",
                   "--lr_scheduler_type",
                   "constant_with_warmup",
                   "--warmup_steps",
                   "12",
                   "--learning_rate",
                   "1"},
                  more);
  }
};

TEST_F(Best, AStopDoesNotWaitForAnEvaluationWhichComesWhenTheRunGoesOn) {
  const Words words{"--eval_dataset",
                    "rows.json",
                    "--eval_strategy",
                    "steps",
                    "--eval_steps",
                    "3",
                    "--per_device_eval_batch_size",
                    "2",
                    "--ranks",
                    "2",
                    "--zero_stage",
                    "3"};
  (void)good(long_run("whole", words));
  testing::Invocation stopped = invocation(long_run("out", words));
  // Three seconds between the update and the evaluation's first batch.
  stopped.environment.emplace_back("ZEROTH_TEST_STOP_AT=0:evaluation after update 3:pause");
  const pid_t front = testing::start(stopped, path("stdout"), path("stderr"));
  ASSERT_TRUE(soon([&] { return records_of(path("out"), "update").size() == 3; }));
  ::usleep(300'000);
  ::kill(front, SIGTERM);
  EXPECT_EQ(testing::wait_for(front), 128 + SIGTERM) << content_of(path("stderr"));
  EXPECT_TRUE(has("out/checkpoint-3")) << content_of(path("stderr"));
  EXPECT_TRUE(records_of(path("out"), "evaluation").empty());
  const Json list = Json::parse(content_of(path("out/checkpoint-3/checkpoint.json")));
  EXPECT_EQ(list.at("progress").at("evaluation_due"), true) << list.dump();
  (void)good(long_run("out", joined(words, {"--resume", "latest"})));
  expect_same_run("out", "whole");
}

TEST_F(Best, TheBestOfTheSavedEvaluationsIsTheResultWhereTheBestOfAllWasNotSaved) {
  make_run_past_its_best("first");
  std::map<int, double> losses;  // by update
  for (const Json& record : records_of(path("first"), "evaluation")) {
    losses[record.at("step")] = record.at("loss").get<double>();
  }
  ASSERT_LT(losses.at(2), losses.at(4));  // or this test says nothing
  ASSERT_LT(losses.at(4), losses.at(8));
  EXPECT_TRUE(weights_in("first") == weights_in("first/checkpoint-4"));
  const testing::Outcome again = good(long_run(
      "first", past_best({"--eval_dataset", "unlike.json", "--resume", "first/checkpoint-8"})));
  EXPECT_NE(again.errors.find("the best evaluation, after update 2"), std::string::npos)
      << again.errors;
  EXPECT_NE(again.errors.find("the best evaluation: update 4"), std::string::npos) << again.errors;
  // In another folder the best one so far is not at hand: told before the training, not after it.
  const testing::Outcome elsewhere = good(long_run("second",
                                                   past_best({"--eval_dataset",
                                                              "unlike.json",
                                                              "--resume",
                                                              "first/checkpoint-8",
                                                              "--save_total_limit",
                                                              "1"})));
  const std::size_t told = elsewhere.errors.find("second/checkpoint-4 of the best evaluation");
  EXPECT_LT(told, elsewhere.errors.find("evaluation after update 10")) << elsewhere.errors;
  EXPECT_NE(elsewhere.errors.find("the best evaluation: update 12"), std::string::npos)
      << elsewhere.errors;
}

TEST_F(Best, LossesOfOtherRowsAreNotCompared) {
  make_run_past_its_best("out");
  const testing::Outcome outcome = good(
      long_run("out", past_best({"--resume", "out/checkpoint-8", "--eval_dataset", "rows.json"})));
  EXPECT_NE(outcome.errors.find("the validation rows are others than the checkpoint's"),
            std::string::npos)
      << outcome.errors;
  EXPECT_NE(outcome.errors.find("the best evaluation: update 12"), std::string::npos)
      << outcome.errors;
}

}  // namespace
}  // namespace zeroth::e2e
