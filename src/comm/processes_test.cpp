#include <chrono>
#include <csignal>
#include <thread>

#include "base/error.h"
#include "comm/test_processes.h"
#include <gtest/gtest.h>

namespace zeroth::comm {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): this folder's test helpers

class Processes : public ::testing::TestWithParam<int> {};

INSTANTIATE_TEST_SUITE_P(Sizes, Processes, ::testing::Values(1, 2, 3, 4));

TEST_P(Processes, GiveTheBitsOfThreads) {
  const int size = GetParam();
  Group run("exercise", size);
  run.start_all();
  const std::vector<std::string> expected = fingerprints_on_threads(size);
  for (int r = 0; r < size; ++r) {
    ASSERT_EQ(run.wait(r), 0) << run.errors(r);
    EXPECT_EQ(run.result(r), expected[static_cast<std::size_t>(r)]) << "rank " << r;
  }
}

TEST(Process, L07_RunsBesideEachOtherDoNotMeet) {
  Group first("exercise", 2);
  Group second("exercise", 2);
  for (int r = 0; r < 2; ++r) {
    first.start(r);
    second.start(r);
  }
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(first.wait(r), 0) << first.errors(r);
    EXPECT_EQ(second.wait(r), 0) << second.errors(r);
    EXPECT_EQ(first.result(r), second.result(r));
  }
}

TEST(Process, AKilledRankIsNamedSoonAndLeavesNothing) {
  Group run("be_killed", 3);
  run.start_all();
  for (int r = 0; r < 3; ++r) {
    run.wait_for_result(r);
  }
  EXPECT_EQ(named_entries(), 0);
  const auto began = std::chrono::steady_clock::now();
  ::kill(run.pid(1), SIGKILL);
  for (const int r : {0, 2}) {
    EXPECT_EQ(run.wait(r), exit_code(ErrorKind::kCommunication));
    expect_words(run.errors(r),
                 {fmt::format("rank 1 (pid {}) is gone", run.pid(1)),
                  "after operation 1, all_reduce 'norms'",
                  "busy with update 3",
                  "barrier 'end of update 3'"});
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began;
  EXPECT_LT(elapsed.count(), 2.0);
  EXPECT_EQ(run.wait(1), 128 + SIGKILL);
  EXPECT_EQ(named_entries(), 0);
}

TEST(Process, AKillAtAnyMomentEndsTheOthers) {
  for (const int milliseconds : {3, 17, 42, 71}) {
    Group run("work_on", 3);
    run.start_all();
    for (int r = 0; r < 3; ++r) {
      run.wait_for_result(r);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    const auto began = std::chrono::steady_clock::now();
    ::kill(run.pid(0), SIGKILL);
    for (const int r : {1, 2}) {
      EXPECT_EQ(run.wait(r), exit_code(ErrorKind::kCommunication));
      expect_words(run.errors(r),
                   {fmt::format("rank 0 (pid {}) is gone", run.pid(0)), "operation"});
    }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began;
    EXPECT_LT(elapsed.count(), 2.0);
    EXPECT_EQ(run.wait(0), 128 + SIGKILL);
  }
  EXPECT_EQ(named_entries(), 0);
}

TEST(Process, ARankThatNeverStartsIsNamedByAll) {
  Group run("exercise", 3, 0.5);
  run.start(0);
  run.start(2);
  for (const int r : {0, 2}) {
    EXPECT_EQ(run.wait(r), exit_code(ErrorKind::kCommunication));
    expect_words(run.errors(r), {"rank 1 of 3 did not join", "within 0.5 s", "--start_timeout"});
  }
}

TEST(Process, AFirstRankThatNeverStartsIsNamed) {
  Group run("exercise", 2, 0.5);
  run.start(1);
  EXPECT_EQ(run.wait(1), exit_code(ErrorKind::kCommunication));
  expect_words(run.errors(1), {"rank 0 of 2 did not join"});
}

TEST(Process, TwoProcessesOfOneRankAreRefused) {
  Group run("exercise", 3, 5);
  run.start(0);
  run.start(1);
  Part part = run.part();
  part.rank = 1;
  const Outcome outcome =
      zeroth::testing::run({.arguments = {"/proc/self/exe"},
                            .environment = {fmt::format("{}={}", kVariable, part.text())}});
  EXPECT_LT(outcome.seconds, 2.0);
  EXPECT_EQ(outcome.exit_code, exit_code(ErrorKind::kCommunication));
  EXPECT_EQ(run.wait(0), exit_code(ErrorKind::kCommunication));
  expect_words(run.errors(0) + outcome.errors, {"two processes of run", "have rank 1"});
  EXPECT_EQ(run.wait(1), exit_code(ErrorKind::kCommunication));
}

TEST(Process, DifferingCallsAreNamedOnBothSidesByAll) {
  Group run("differ", 2);
  run.start_all();
  for (const int r : {0, 1}) {
    EXPECT_EQ(run.wait(r), exit_code(ErrorKind::kCommunication));
    expect_words(run.errors(r),
                 {"rank 0 called all_reduce 'norms' (2000 floats)",
                  "rank 1 called all_reduce 'norms' (3000 floats)"});
  }
}

TEST(Process, AFailureIsToldWithItsReason) {
  Group run("fail", 2);
  run.start_all();
  EXPECT_EQ(run.wait(0), exit_code(ErrorKind::kCommunication));
  EXPECT_EQ(run.wait(1), exit_code(ErrorKind::kData));
  expect_words(run.errors(0), {"rank 1", "failed", "row 17 of train.jsonl is broken"});
}

TEST(Process, ASharedMemoryThatIsTooSmallIsAnErrorOfAll) {
  Group run("take_too_much", 2);
  run.start_all();
  for (const int r : {0, 1}) {
    EXPECT_EQ(run.wait(r), exit_code(ErrorKind::kMemory));
    expect_words(run.errors(r), {"bytes are needed", "are available in /dev/shm"});
  }
}

}  // namespace
}  // namespace zeroth::comm
