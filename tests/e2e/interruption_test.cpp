#include <csignal>

#include "e2e/support.h"
#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

class Interrupted : public EndToEnd {
 protected:
  // A run that goes on until it is stopped, after its first update.
  [[nodiscard]] pid_t start_long_run() const {
    const pid_t front = testing::start(
        invocation(train("out", {"--max_steps", "1000000"})), path("stdout"), path("stderr"));
    EXPECT_TRUE(soon([&] { return content_of(path("out/metrics.jsonl")).ends_with("}\n"); }))
        << content_of(path("stderr"));
    return front;
  }

  [[nodiscard]] std::string said() const { return content_of(path("stderr")); }
};

// What a signal does to updates is in resume_test.cpp.
TEST_F(Interrupted, ASignalBeforeTheFirstUpdateEndsTheRunAtOnce) {
  for (const auto& [signal, name] : {std::pair{SIGINT, "SIGINT"}, std::pair{SIGTERM, "SIGTERM"}}) {
    testing::Invocation paused = invocation(train("out"));
    paused.environment.emplace_back("ZEROTH_TEST_STOP_AT=0:loading the model:pause");
    const pid_t front = testing::start(paused, path("stdout"), path("stderr"));
    ASSERT_TRUE(soon([&] { return said().find("training: ") != std::string::npos; })) << said();
    ::kill(front, signal);
    EXPECT_EQ(testing::wait_for(front), 128 + signal);
    EXPECT_NE(said().find(fmt::format("stopped by {}: nothing is saved now", name)),
              std::string::npos)
        << said();
    EXPECT_FALSE(fs::exists(path("out/.zeroth.lock")));
    EXPECT_FALSE(fs::exists(path("out/latest")));
  }
}

TEST_F(Interrupted, AFolderInUseIsRefusedUntilItsRunIsDead) {
  const pid_t front = start_long_run();
  refused(train("out", {"--overwrite_output_dir"}),
          2,
          {fmt::format("in use by a run that is still going (process {})", front)});
  ::kill(front, SIGKILL);
  EXPECT_EQ(testing::wait_for(front), 128 + SIGKILL);
  // The worker dies with its front; the kernel then drops the lock.
  EXPECT_TRUE(soon([&] {
    return zeroth(train("out", {"--overwrite_output_dir", "--max_steps", "1"})).exit_code == 0;
  }));
  EXPECT_EQ(records_of(path("out"), "update").size(), 1U);
}

// A file system of a few pages.
class FullDisk : public EndToEnd {
 protected:
  void SetUp() override {
    EndToEnd::SetUp();
    fs::create_directory(path("disk"));
    if (::mount("tmpfs", path("disk").c_str(), "tmpfs", 0, "size=96k") != 0) {
      GTEST_SKIP() << "needs root";
    }
    mounted_ = true;
  }

  void TearDown() override {
    if (mounted_) {
      EXPECT_EQ(::umount(path("disk").c_str()), 0);
    }
  }

 private:
  bool mounted_ = false;
};

TEST_F(FullDisk, AResultWithoutRoomIsRefusedBeforeAnythingGoes) {
  write("disk/out/adapter_model.safetensors", "the good result");
  refused(
      train("disk/out", {"--overwrite_output_dir", "--lora_rank", "64", "--save_strategy", "no"}),
      6,
      {"the result takes", "disk/out"});
  refused(train("disk/out", {"--overwrite_output_dir", "--lora_rank", "64"}),
          6,
          {"the result and one checkpoint take", "--save_strategy no"});
  EXPECT_EQ(content_of(path("disk/out/adapter_model.safetensors")), "the good result");
}

TEST_F(FullDisk, RecordsThatNoLongerFitEndTheRun) {
  refused(train("disk/out",
                {"--max_steps",
                 "1000000",
                 "--log_micro_steps",
                 "--lora_rank",
                 "1",
                 "--save_strategy",
                 "no"}),
          6,
          {"disk/out/metrics.jsonl", "No space left on device", "Free some space"});
  EXPECT_GT(records_of(path("disk/out"), "update").size(), 0U);
}

// Room for the result was there at the start, and the run's own records took it.
TEST_F(FullDisk, ASaveThatNoLongerFitsEndsTheOtherRanksToo) {
  write("disk/filler", std::string(40960, 'x'));
  refused(train("disk/out",
                {"--finetuning_type",
                 "full",
                 "--bf16",
                 "--ranks",
                 "2",
                 "--zero_stage",
                 "3",
                 "--save_strategy",
                 "no"}),
          6,
          {"disk/out/model.safetensors", "No space left on device", "Free some space"});
  EXPECT_EQ(records_of(path("disk/out"), "update").size(), 3U);
  for (const auto& entry : fs::directory_iterator(path("disk/out"))) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("model.safetensors"));
  }
}

}  // namespace
}  // namespace zeroth::e2e
