#include <csignal>

#include "e2e/checkpoints.h"
#include <fmt/format.h>
#include <sys/mount.h>
#include <unistd.h>

// Checkpoints on a disk that is full, goes read-only or away: an error, and the last one stands.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

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

}  // namespace
}  // namespace zeroth::e2e
