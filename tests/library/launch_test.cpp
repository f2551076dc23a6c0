#include <algorithm>
#include <csignal>
#include <filesystem>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "process.h"
#include <gtest/gtest.h>
#include <unistd.h>

// `zeroth launch` with small shell programs: what each rank is told, and how a run ends.
namespace zeroth::testing {
namespace {

namespace fs = std::filesystem;

Invocation launch(int ranks, const std::string& script) {
  return {
      .arguments =
          {ZEROTH_PROGRAM, "launch", "--ranks", std::to_string(ranks), "--", "sh", "-c", script},
      .input = "",
      .environment = {},
      .working_folder = {}};
}

std::vector<std::string> sorted_lines(const std::string& text) {
  std::vector<std::string> lines = split(text, '\n');
  std::erase(lines, "");
  std::sort(lines.begin(), lines.end());
  return lines;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Launch, EveryRankIsToldWhichItIs) {
  const Outcome outcome =
      run(launch(3, "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $MASTER_ADDR"));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_EQ(
      sorted_lines(outcome.output),
      (std::vector<std::string>{"0 0 3 3 localhost", "1 1 3 3 localhost", "2 2 3 3 localhost"}));
}

// Two runs at the same time must not meet.
TEST(Launch, EveryRunHasANameOfItsOwn) {
  const std::string script = "echo $ZEROTH_RUN_NAME";
  const std::vector<std::string> first = sorted_lines(run(launch(2, script)).output);
  const std::vector<std::string> second = sorted_lines(run(launch(2, script)).output);
  ASSERT_EQ(first.size(), 2U);
  ASSERT_EQ(second.size(), 2U);
  EXPECT_EQ(first[0], first[1]);
  EXPECT_NE(first[0], second[0]);
}

TEST(Launch, ARankThatFailsEndsTheOthersAndGivesItsCode) {
  const Outcome outcome = run(launch(3, "if [ $RANK = 1 ]; then exit 7; fi; exec sleep 60"));
  EXPECT_EQ(outcome.exit_code, 7);
  EXPECT_TRUE(contains(outcome.errors, "rank 1 (process ")) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, ") ended with code 7")) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "ranks 0 and 2 did not end by itself")) << outcome.errors;
  EXPECT_LT(outcome.seconds, 20);
}

TEST(Launch, ARankThatDiesOfASignalIsNamed) {
  const Outcome outcome = run(launch(2, "if [ $RANK = 0 ]; then kill -9 $$; fi"));
  EXPECT_EQ(outcome.exit_code, 128 + 9);
  EXPECT_TRUE(contains(outcome.errors, "rank 0 (process ")) << outcome.errors;
  EXPECT_TRUE(contains(outcome.errors, "died of signal 9")) << outcome.errors;
}

TEST(Launch, SignalsReachTheProgram) {
  const TemporaryFolder folder;
  const fs::path ready = folder.path() / "ready";
  const pid_t process = start(
      launch(1, "trap 'exit 42' TERM; touch " + ready.string() + "; while :; do sleep 0.05; done"),
      folder.path() / "output",
      folder.path() / "errors");
  for (int i = 0; i < 1000 && !fs::exists(ready); ++i) {
    ::usleep(10'000);
  }
  ASSERT_TRUE(fs::exists(ready));
  ::kill(process, SIGTERM);
  EXPECT_EQ(wait_for(process), 42);
}

}  // namespace
}  // namespace zeroth::testing
