#include <csignal>

#include "e2e/checkpoints.h"
#include <fmt/format.h>
#include <unistd.h>

// A run that is saved and gone on with is the run that was never stopped.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

using Resume = Checkpoints;

TEST_F(Resume, GoesOnToTheSameBitsFromEveryCheckpoint) {
  for (const Words& kind : {Words{},
                            {"--finetuning_type",
                             "full",
                             "--bf16",
                             "--ranks",
                             "2",
                             "--zero_stage",
                             "3",
                             "--per_device_train_batch_size",
                             "1"},
                            {"--fp16",
                             "--gradient_accumulation_steps",
                             "2",
                             "--ranks",
                             "2",
                             "--zero_stage",
                             "2",
                             "--per_device_train_batch_size",
                             "1"}}) {
    (void)good(long_run("whole", joined(kind, {"--overwrite_output_dir"})));
    for (const int update : {4, 8, 12}) {
      fs::remove_all(path("out"));
      fs::copy(path("whole"), path("out"), fs::copy_options::recursive);
      cut_back_to("out", update);
      const auto outcome =
          good(long_run("out", joined(kind, {"--resume_from_checkpoint", "latest"})));
      EXPECT_NE(outcome.errors.find(
                    fmt::format("going on from out/checkpoint-{} after update {}", update, update)),
                std::string::npos)
          << outcome.errors;
      expect_same_run("out", "whole");
    }
  }
}

TEST_F(Resume, SavesByStepsAtTheEndAndKeepsAsManyAsItIsTold) {
  (void)good(long_run("out", {"--save_steps", "5", "--save_total_limit", "2"}));
  EXPECT_FALSE(has("out/checkpoint-5"));
  EXPECT_TRUE(has("out/checkpoint-10"));
  EXPECT_TRUE(has("out/checkpoint-12"));
  EXPECT_EQ(content_of(path("out/latest")), "checkpoint-12\n");
}

TEST_F(Resume, SavesByAShareOfAllUpdatesByEpochOrNever) {
  (void)good(long_run("share", {"--save_steps", "0.25"}));
  for (const int update : {3, 6, 9, 12}) {
    EXPECT_TRUE(has(fmt::format("share/checkpoint-{}", update)));
  }
  const Json run = json_of(train("epochs",
                                 {"--save_strategy",
                                  "epoch",
                                  "--num_train_epochs",
                                  "2",
                                  "--max_steps",
                                  "-1",
                                  "--per_device_train_batch_size",
                                  "4"}));
  const auto updates = run.at("updates").get<int>();
  EXPECT_TRUE(has(fmt::format("epochs/checkpoint-{}", updates / 2)));
  EXPECT_TRUE(has(fmt::format("epochs/checkpoint-{}", updates)));
  (void)good(long_run("never", {"--save_strategy", "no"}));
  EXPECT_FALSE(has("never/latest"));
}

TEST_F(Resume, AStoppedRunIsSavedAndGoesOn) {
  const Words endless{"--max_steps", "100000", "--save_strategy", "no"};
  for (const auto& [signal, name] : {std::pair{SIGTERM, "SIGTERM"}, std::pair{SIGINT, "SIGINT"}}) {
    const pid_t front = testing::start(
        invocation(long_run(
            "out",
            joined(endless, {"--ranks", "2", "--zero_stage", "2", "--overwrite_output_dir"}))),
        path("stdout"),
        path("stderr"));
    ASSERT_TRUE(soon([&] { return records_of(path("out"), "update").size() > 2; }))
        << content_of(path("stderr"));
    ::kill(front, signal);
    EXPECT_EQ(testing::wait_for(front), 128 + signal);
    const std::string said = content_of(path("stderr"));
    EXPECT_NE(said.find(fmt::format("{}: this update is finished and saved", name)),
              std::string::npos)
        << said;
    EXPECT_NE(said.find("--resume_from_checkpoint latest"), std::string::npos) << said;
    const auto updates = static_cast<int>(records_of(path("out"), "update").size());
    EXPECT_TRUE(has(fmt::format("out/checkpoint-{}", updates))) << said;
    EXPECT_FALSE(has("out/adapter_model.safetensors"));
    const Json run = json_of(long_run("out",
                                      {"--ranks",
                                       "2",
                                       "--zero_stage",
                                       "2",
                                       "--max_steps",
                                       std::to_string(updates + 2),
                                       "--resume",
                                       "latest"}));
    EXPECT_EQ(run.at("updates"), updates + 2);
    EXPECT_EQ(records_of(path("out"), "update").size(), static_cast<std::size_t>(updates) + 2);
    fs::remove_all(path("out"));
  }
}

TEST_F(Resume, ARequestToSaveThatComesTooEarlyEndsNothing) {
  for (const useconds_t wait : {0U, 5'000U, 50'000U, 200'000U}) {
    const pid_t front = testing::start(
        invocation(train("out", {"--overwrite_output_dir"})), path("stdout"), path("stderr"));
    ASSERT_TRUE(soon([&] { return testing::catches(front, SIGUSR1); }));
    ::usleep(wait);
    ::kill(front, SIGUSR1);
    EXPECT_EQ(testing::wait_for(front), 0) << content_of(path("stderr"));
  }
}

TEST_F(Resume, ASecondSignalEndsTheRunAtOnce) {
  testing::Invocation paused = invocation(long_run("out"));
  paused.environment.emplace_back("ZEROTH_TEST_STOP_AT=0:checkpoint of update 4:pause");
  const pid_t front = testing::start(paused, path("stdout"), path("stderr"));
  ASSERT_TRUE(soon([&] { return records_of(path("out"), "update").size() == 4; }));
  ::kill(front, SIGTERM);
  ::usleep(500'000);  // two requests, not one of a tool that signals twice
  ::kill(front, SIGTERM);
  EXPECT_EQ(testing::wait_for(front), 143);
  EXPECT_FALSE(has("out/checkpoint-4"));
  EXPECT_FALSE(has("out/latest"));
}

TEST_F(Resume, ARunSavesOnRequestAndGoesOn) {
  const pid_t front = testing::start(
      invocation(long_run("out", {"--max_steps", "100000", "--save_strategy", "no"})),
      path("stdout"),
      path("stderr"));
  ASSERT_TRUE(soon([&] { return records_of(path("out"), "update").size() > 1; }));
  ::kill(front, SIGUSR1);
  EXPECT_TRUE(soon([&] { return has("out/latest"); })) << content_of(path("stderr"));
  const std::size_t before = records_of(path("out"), "update").size();
  EXPECT_TRUE(soon([&] { return records_of(path("out"), "update").size() > before; }));
  ::kill(front, SIGKILL);
  EXPECT_EQ(testing::wait_for(front), 128 + SIGKILL);
  EXPECT_TRUE(soon([&] {
    return zeroth(long_run("out", {"--max_steps", "1", "--resume", "latest"})).exit_code == 0;
  }));
}

TEST_F(Resume, OtherRanksStagesAndCutsGiveTheSameNumbers) {
  (void)good(long_run("whole", {"--per_device_train_batch_size", "4"}));
  cut_back_to("whole", 8);
  (void)good(long_run("uncut", {"--per_device_train_batch_size", "4"}));
  const Tensors reference = tensors_of(path("uncut/adapter_model.safetensors"));
  for (const Words& other :
       {Words{"--per_device_train_batch_size",
              "1",
              "--gradient_accumulation_steps",
              "2",
              "--ranks",
              "2",
              "--zero_stage",
              "3"},
        {"--per_device_train_batch_size", "1", "--ranks", "4", "--zero_stage", "1"},
        {"--per_device_train_batch_size", "2", "--gradient_accumulation_steps", "2"}}) {
    fs::remove_all(path("out"));
    fs::copy(path("whole"), path("out"), fs::copy_options::recursive);
    (void)good(long_run("out", joined(other, {"--resume_from_checkpoint", "auto"})));
    EXPECT_LT(relative_distance(tensors_of(path("out/adapter_model.safetensors")), reference),
              1e-5);
  }
}

// Rows that were trained come once an epoch, whatever the global batch is from there on.
TEST_F(Resume, AnotherGlobalBatchNeedsAWordAndTakesTheRowsThatAreLeft) {
  const Words epoch{"--max_steps", "-1", "--num_train_epochs", "1", "--save_steps", "2"};
  (void)good(long_run("out", epoch));
  const std::int64_t rows = records_of(path("out"), "update").back().at("rows");
  EXPECT_GT(rows, 0);
  cut_back_to("out", 2);
  const Words wider = joined(epoch, {"--per_device_train_batch_size", "4", "--resume", "latest"});
  refused(long_run("out", wider),
          4,
          {"train_batch_size: checkpoint 2, now 4 (4 x 1 x 1)", "--allow train_batch_size"});
  const Json run = json_of(long_run("out", joined(wider, {"--allow", "train_batch_size"})));
  std::int64_t in_epoch = 0;
  for (const Json& record : records_of(path("out"), "update")) {
    in_epoch += record.at("rows").get<std::int64_t>();
  }
  EXPECT_EQ(run.at("rows"), in_epoch);
  const auto all = lines_of(path("out/metrics.jsonl"));
  EXPECT_DOUBLE_EQ(records_of(path("out"), "update").back().at("epoch").get<double>(), 1.0);
}

TEST_F(Resume, AFinishedRunIsExtended) {
  (void)good(long_run("whole", {"--lr_scheduler_type", "constant", "--max_steps", "16"}));
  (void)good(long_run("out", {"--lr_scheduler_type", "constant"}));
  const auto outcome = good(long_run(
      "out", {"--lr_scheduler_type", "constant", "--max_steps", "16", "--resume", "latest"}));
  EXPECT_NE(outcome.errors.find("max_steps: checkpoint 12, now 16 (command line)"),
            std::string::npos)
      << outcome.errors;
  EXPECT_TRUE(weights_in("out") == weights_in("whole"));
}

TEST_F(Resume, EvaluationsAndRecordsGoOnToo) {
  const Words evaluating{"--val_size",
                         "3",
                         "--eval_strategy",
                         "steps",
                         "--eval_steps",
                         "3",
                         "--log_micro_steps",
                         "--logging_steps",
                         "2"};
  (void)good(long_run("whole", evaluating));
  fs::copy(path("whole"), path("out"), fs::copy_options::recursive);
  cut_back_to("out", 4);
  (void)good(long_run("out", joined(evaluating, {"--resume", "latest"})));
  expect_same_run("out", "whole");
  Json state = Json::parse(content_of(path("out/trainer_state.json")));
  Json reference = Json::parse(content_of(path("whole/trainer_state.json")));
  EXPECT_EQ(state.at("global_step"), 12);
  EXPECT_EQ(state.at("log_history").size(), reference.at("log_history").size());
  EXPECT_EQ(state.at("log_history").back().at("step"), 12);
}

// However its path is spelt, a checkpoint of output_dir goes on there and loses nothing.
// After its first checkpoint the run's folder changes for the worse; `checkpoint-4` must stay as it
// is, and on it the run must go on when all is well again.
// Nothing asks what time it is: later checkpoints with older dates are still the later ones.
TEST_F(Resume, AClockThatJumpsChangesNothing) {
  (void)good(long_run("whole"));
  (void)good(long_run("out", {"--save_total_limit", "2"}));
  cut_back_to("out", 8);
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(24 * 365);
  fs::last_write_time(path("out/checkpoint-8"), long_ago);
  fs::last_write_time(path("out/latest"), long_ago);
  (void)good(long_run("out", {"--resume", "latest", "--save_total_limit", "2"}));
  EXPECT_TRUE(weights_in("out") == weights_in("whole"));
  EXPECT_TRUE(has("out/checkpoint-12"));
}

TEST_F(Resume, ARunThatWasKilledBeforeItsFirstCheckpointBeginsAnew) {
  testing::Invocation killed = invocation(long_run("out", {"--resume", "auto"}));
  killed.environment.emplace_back("ZEROTH_TEST_STOP_AT=0:checkpoint of update 4");
  EXPECT_EQ(testing::run(killed).exit_code, 6);
  (void)good(long_run("out", {"--resume", "auto"}));
  (void)good(long_run("whole"));
  expect_same_run("out", "whole");
  fs::remove_all(path("out/checkpoint-4"));  // a result is there: it does not go by itself
  fs::remove_all(path("out/checkpoint-8"));
  fs::remove_all(path("out/checkpoint-12"));
  refused(long_run("out", {"--resume", "auto"}), 2, {"holds results of an earlier run"});
}

}  // namespace
}  // namespace zeroth::e2e
