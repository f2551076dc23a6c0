#include <csignal>

#include "e2e/checkpoints.h"
#include <fmt/format.h>
#include <sys/mount.h>
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
    ::usleep(20'000 + wait);  // the front itself is up by then
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

TEST_F(Resume, AFolderOfAnotherModelOrOtherRowsIsRefused) {
  (void)good(long_run("out"));
  make_model("other", {.head_dim = 16});
  const Words again{"--resume_from_checkpoint", "latest"};
  refused(
      long_run("out", joined(again, {"--model_name_or_path", "other"})),
      4,
      {"belongs to another model than --model_name_or_path other", "--allow model_name_or_path"});
  fs::copy(path("model"), path("moved"), fs::copy_options::recursive);  // the same by another name
  fs::copy(path("rows.json"), path("same.json"));
  const auto outcome = good(
      long_run("out", joined(again, {"--model_name_or_path", "moved", "--dataset", "same.json"})));
  EXPECT_NE(outcome.errors.find("model_name_or_path: checkpoint model, now moved"),
            std::string::npos)
      << outcome.errors;
  write("more.json",
        R"([{"instruction": "a", "output": "b"}, {"instruction": "c", "output": "d"}])");
  fs::rename(path("rows.json"), path("rows.before"));
  fs::rename(path("more.json"), path("rows.json"));
  refused(long_run("out", again), 4, {"was made with other training rows", "--allow dataset"});
  (void)good(long_run("out", joined(again, {"--allow", "dataset", "--max_steps", "14"})));
  fs::rename(path("rows.before"), path("rows.json"));
  const Words older{"--resume_from_checkpoint", "out/checkpoint-8"};
  const Words narrow{"--lora_rank", "4", "--lora_alpha", "16"};
  for (const Words& allowed : {Words{}, Words{"--allow", "lora_rank"}}) {
    refused(long_run("out", joined(older, joined(narrow, allowed))),
            4,
            {"trains other weights", "lora_rank: checkpoint 8, now 4", "--adapter_name_or_path"});
  }
  make_model("wide", {.head_dim = 16});
  refused(
      long_run("out",
               joined(older, {"--model_name_or_path", "wide", "--allow", "model_name_or_path"})),
      4,
      {"trains other parameters than this run",
       "q_proj.lora_B.weight [32, 8]",
       "[64, 8]",
       " more"});
  for (const Words& allowed : {Words{}, Words{"--allow", "optim"}}) {
    refused(long_run("out", joined(older, joined({"--optim", "lion"}, allowed))),
            4,
            {"holds means of gradients and of their squares (adamw_torch)",
             "this run's optimizer keeps a mean of gradients (lion)",
             "(--optim adamw_torch)"});
  }
  (void)good(long_run("out", joined(older, {"--optim", "lamb", "--allow", "optim"})));
}

// However its path is spelt, a checkpoint of output_dir goes on there and loses nothing.
TEST_F(Resume, ACheckpointIsKnownWhateverItsPathSays) {
  (void)good(long_run("out"));
  fs::create_directory_symlink("out/checkpoint-8", path("link"));
  for (const std::string from :
       {"checkpoint-8", "checkpoint-8/", "../link", "../out/checkpoint-8"}) {
    testing::Invocation inside = invocation(long_run(".",
                                                     {"--model_name_or_path",
                                                      "../model",
                                                      "--dataset",
                                                      "../rows.json",
                                                      "--resume_from_checkpoint",
                                                      from,
                                                      "--overwrite_output_dir"}));
    inside.working_folder = path("out");
    const testing::Outcome outcome = testing::run(inside);
    EXPECT_EQ(outcome.exit_code, 0) << from << outcome.errors;
    EXPECT_TRUE(has("out/checkpoint-4") && has("out/checkpoint-8")) << from;
  }
  refused(long_run("out", {"--resume_from_checkpoint", ""}),
          2,
          {"resume_from_checkpoint", "takes a folder, latest, auto"});
}

TEST_F(Resume, ADamagedCheckpointIsRefusedByTheNameOfItsFile) {
  (void)good(long_run("out"));
  const fs::path folder = path("out/checkpoint-12");
  for (const std::string name :
       {"state-00000-of-00001.safetensors", "adapter_model.safetensors", "trainer_state.json"}) {
    const std::string whole = content_of(folder / name);
    std::string damaged = whole;
    damaged[damaged.size() - 5] ^= 1;
    write("out/checkpoint-12/" + name, damaged);
    const bool weights = name.ends_with(".safetensors");
    refused(long_run("out", {"--resume", "latest"}), 4, {name, weights ? "is damaged" : ""});
    write("out/checkpoint-12/" + name, whole.substr(0, whole.size() / 2));
    refused(long_run("out", {"--resume", "latest"}), 4, {name, "bytes instead of"});
    write("out/checkpoint-12/" + name, whole);
  }
  std::string manifest = content_of(folder / "checkpoint.json");
  manifest.replace(manifest.find("\"row\": "), 8, "\"row\": 1");
  write("out/checkpoint-12/checkpoint.json", manifest);
  refused(long_run("out", {"--resume", "out/checkpoint-12"}),
          4,
          {"checkpoint.json was changed after it was written"});
  (void)good(long_run("out", {"--resume", "out/checkpoint-8"}));
}

TEST_F(Resume, ADifferenceIsAnErrorUnderStrict) {
  (void)good(long_run("out"));
  refused(
      long_run("out",
               {"--resume", "latest", "--learning_rate", "5e-4", "--strict", "--max_steps", "14"}),
      2,
      {"--strict: settings are not those of out/checkpoint-12",
       "learning_rate: checkpoint 0.001, now 0.0005 (command line)",
       "max_steps: checkpoint 12, now 14 (command line)"});
}

TEST_F(Resume, WordsThatMeanNothingAreRefused) {
  refused(long_run("out", {"--save_steps", "2.5"}),
          2,
          {"save_steps 2.5 (command line)", "neither a number"});
  refused(long_run("out", {"--load_best_model_at_end"}), 2, {"needs evaluations while training"});
  refused(
      long_run("out", {"--load_best_model_at_end", "--val_size", "2", "--eval_strategy", "epoch"}),
      2,
      {"load_best_model_at_end", "save_strategy steps", "eval_strategy epoch"});
  refused(long_run("out",
                   {"--load_best_model_at_end",
                    "--val_size",
                    "2",
                    "--eval_strategy",
                    "steps",
                    "--eval_steps",
                    "3"}),
          2,
          {"save_steps 4", "a multiple of", "eval_steps 3"});
  refused(long_run("out", {"--resume", "latest", "--allow", "learning_rate"}),
          2,
          {"--allow learning_rate", "it may change without --allow"});
  refused(
      long_run("out", {"--resume", "latest", "--allow", "lr_rate"}), 2, {"there is no such key"});
  refused(long_run("out",
                   {"--greater_is_better",
                    "true",
                    "--load_best_model_at_end",
                    "--val_size",
                    "2",
                    "--eval_strategy",
                    "steps",
                    "--eval_steps",
                    "4"}),
          2,
          {"greater_is_better", "lower is better"});
}

// A file system that can be full, read-only, or gone.
class SmallDisk : public Checkpoints {
 protected:
  void SetUp() override {
    Checkpoints::SetUp();
    fs::create_directory(path("disk"));
    if (!mount("disk", "size=600k")) {
      GTEST_SKIP() << "needs root";
    }
  }

  void TearDown() override {
    (void)::umount2(path("disk").c_str(), MNT_DETACH);
    Checkpoints::TearDown();
  }

  [[nodiscard]] bool mount(const std::string& where,
                           const std::string& options,
                           unsigned long flags = 0) const {
    return ::mount("tmpfs", path(where).c_str(), "tmpfs", flags, options.c_str()) == 0;
  }
};

TEST_F(SmallDisk, AFullDiskEndsTheRunAndTheLastCheckpointGoesOn) {
  const Words small{"--lora_rank", "1", "--max_steps", "100000"};
  write("disk/filler", std::string(200'000, 'x'));
  const pid_t front =
      testing::start(invocation(long_run("disk/out", small)), path("stdout"), path("stderr"));
  EXPECT_EQ(testing::wait_for(front), 6);
  const std::string said = content_of(path("stderr"));
  EXPECT_NE(said.find("a checkpoint takes"), std::string::npos) << said;
  EXPECT_NE(said.find("--save_total_limit"), std::string::npos) << said;
  fs::remove(path("disk/filler"));
  const auto outcome = good(
      long_run("disk/out", {"--lora_rank", "1", "--save_strategy", "no", "--resume", "latest"}));
  EXPECT_NE(outcome.errors.find("going on from disk/out/checkpoint-"), std::string::npos);
}

// After its first checkpoint the run's folder changes for the worse; `checkpoint-4` must stay as it
// is, and on it the run must go on when all is well again.
TEST_F(SmallDisk, AFolderThatCanNoLongerBeWrittenEndsTheRun) {
  ASSERT_TRUE(::umount2(path("disk").c_str(), MNT_DETACH) == 0 && mount("disk", "size=4m"));
  testing::Invocation paused = invocation(long_run("disk/out"));
  paused.environment.emplace_back("ZEROTH_TEST_STOP_AT=0:forward of update 7:pause");
  const auto ends_with_6 = [&](const std::function<void()>& harm, const std::string& says) {
    if (has("disk/out")) {
      fs::remove_all(path("disk/out"));
    }
    const pid_t front = testing::start(paused, path("stdout"), path("stderr"));
    EXPECT_TRUE(soon([&] { return has("disk/out/latest"); }));
    harm();
    EXPECT_EQ(testing::wait_for(front), 6);
    const std::string said = content_of(path("stderr"));
    EXPECT_NE(said.find(says), std::string::npos) << said;
  };
  ends_with_6([&] { EXPECT_TRUE(mount("disk/out", "size=4m", MS_RDONLY)); },
              "Read-only file system");
  EXPECT_EQ(::umount2(path("disk/out").c_str(), MNT_DETACH), 0);
  EXPECT_EQ(content_of(path("disk/out/latest")), "checkpoint-4\n");
  (void)good(long_run("disk/out", {"--resume", "latest"}));
  ends_with_6([&] { fs::rename(path("disk/out"), path("disk/elsewhere")); },
              "disk/out cannot be reached any more");
  (void)good(long_run("disk/elsewhere", {"--resume", "latest"}));
}

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
