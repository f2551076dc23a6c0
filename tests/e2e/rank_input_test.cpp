#include <algorithm>
#include <chrono>
#include <csignal>
#include <functional>
#include <thread>

#include "base/text.h"
#include "e2e/ranks.h"
#include <fmt/format.h>
#include <unistd.h>

// What ranks are given that cannot work, and what looks as if it could not: a clear answer soon,
// nothing left behind (RankTest looks).
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

// Seconds; two on a machine that does nothing else, and far from any default limit.
constexpr double kSoon = 30;

class RankInput : public RankTest {
 protected:
  void refused_soon(const testing::Outcome& outcome, int exit_code, const Words& says) const {
    EXPECT_EQ(outcome.exit_code, exit_code) << outcome.errors;
    EXPECT_LT(outcome.seconds, kSoon);
    for (const std::string& part : says) {
      EXPECT_NE(outcome.errors.find(part), std::string::npos) << "not said: " << part << "\nsaid:\n"
                                                              << outcome.errors;
    }
  }

  // The run with a /dev/shm of its own, of this size; the machine's own is not touched.
  [[nodiscard]] testing::Outcome with_shared_memory_of(const std::string& size,
                                                       const Words& words) const {
    testing::Invocation invocation = this->invocation(words);
    invocation.arguments =
        joined({"/usr/bin/env",
                "unshare",
                "--mount",
                "/bin/sh",
                "-c",
                fmt::format("mount -t tmpfs -o size={} tmpfs /dev/shm && exec \"$@\"", size),
                "sh"},
               invocation.arguments);
    return testing::run(invocation);
  }
};

TEST_F(RankInput, MoreRanksThanRowsOfADataSetTrain) {
  const testing::Outcome outcome =
      zeroth(train("out", joined(cut(3, 1, 2, 0), {"--max_samples", "2"})));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_LT(outcome.seconds, kSoon);
  EXPECT_EQ(records_of(path("out"), "update").at(0).at("rows"), 2);
}

TEST_F(RankInput, MoreRanksThanRowsEvaluateAndPredict) {
  const Words model{"--model_name_or_path", "model", "--dataset", "rows.json"};
  const Words few{"--max_samples", "1", "--ranks", "3"};
  const testing::Outcome evaluated = zeroth(joined(joined({"eval"}, model), few));
  EXPECT_EQ(evaluated.exit_code, 0) << evaluated.errors;
  EXPECT_LT(evaluated.seconds, kSoon);
  const Words answer{"--max_new_tokens", "3", "--output_dir", "answers"};
  const testing::Outcome predicted =
      zeroth(joined(joined(joined({"predict"}, model), few), answer));
  EXPECT_EQ(predicted.exit_code, 0) << predicted.errors;
  EXPECT_LT(predicted.seconds, kSoon);
  EXPECT_EQ(lines_of(path("answers/generated_predictions.jsonl")).size(), 1U);
}

TEST_F(RankInput, AStageAboveThreeIsRefusedBeforeARankStarts) {
  refused_soon(zeroth(train("out", cut(2, 1, 1, 4))), 2, {"zero_stage", "4", "3"});
}

// Three things need room, in this order: the table through which ranks meet, the windows through
// which they show each other what is private (4 MB for two), and the model's states. All are taken
// before the first update: a result is never lost for want of them.
TEST_F(RankInput, AFullSharedMemoryIsAnErrorOfAll) {
  if (::geteuid() != 0 ||
      testing::run({.arguments = {"/usr/bin/env", "unshare", "--mount", "true"}}).exit_code != 0) {
    GTEST_SKIP() << "needs root";
  }
  for (const char* size : {"16k", "1m", "4300k"}) {
    SCOPED_TRACE(size);
    refused_soon(
        with_shared_memory_of(
            size, train("out", joined(cut(2, 1, 1, 1), {"--finetuning_type", "full", "--bf16"}))),
        6,
        {"memory error: not enough shared memory: ",
         " bytes are needed, ",
         "in /dev/shm",
         "Enlarge it"});
    EXPECT_TRUE(records_of(path("out"), "update").empty());
  }
}

TEST_F(RankInput, ARankThatNeverStartsIsNamed) {
  const auto began = std::to_string(::getpid());
  refused_soon(zeroth(train("out", {"--start_timeout", "1"}),
                      {"WORLD_SIZE=3", "RANK=0", "LOCAL_RANK=0", "MASTER_PORT=" + began}),
               5,
               {"ranks 1, 2 of 3 did not join", "within 1 s", "--start_timeout"});
  refused_soon(zeroth(train("out", {"--start_timeout", "1"}),
                      {"WORLD_SIZE=2", "RANK=1", "LOCAL_RANK=1", "MASTER_PORT=" + began}),
               5,
               {"rank 0 of 2 did not join"});
}

// MPI's own start waits for ever; the limit holds there too.
TEST_F(RankInput, ARankThatMpirunDoesNotStartEndsTheWait) {
  if (!has_mpirun()) {
    GTEST_SKIP() << "needs mpirun";
  }
  testing::Invocation invocation = under_mpirun({"a"}, train("out", {"--start_timeout", "1"}));
  invocation.arguments = joined(invocation.arguments, {":", "-n", "1", "sleep", "30"});
  refused_soon(testing::run(invocation),
               5,
               {"communication error: MPI_Init did not end within 1 s", "--start_timeout"});
}

TEST_F(RankInput, TwoLaunchersThatDisagreeAreRefused) {
  refused_soon(
      zeroth(train("out"),
             {"WORLD_SIZE=4", "RANK=0", "OMPI_COMM_WORLD_SIZE=2", "OMPI_COMM_WORLD_RANK=1"}),
      2,
      {"two launchers disagree"});
}

TEST_F(RankInput, SeveralHostsWithoutMpiAreRefusedWithTheCommandToUse) {
  refused_soon(zeroth(train("out"), {"WORLD_SIZE=4", "RANK=0", "LOCAL_WORLD_SIZE=2"}),
               2,
               {"several hosts", "mpirun -n 4"});
}

// Whether rank 0 of that run waits for the others: its meeting point (comm/meeting_point.cpp) is
// open.
bool is_waiting(const std::string& run_name) {
  const std::string name =
      fmt::format("@zeroth-{}-{:016x}", ::getuid(), std::hash<std::string>{}(run_name));
  return content_of("/proc/net/unix").find(name) != std::string::npos;
}

TEST_F(RankInput, L07_ASecondRunOfTheSameNameIsRefused) {
  const Words world{"WORLD_SIZE=2", "RANK=0", fmt::format("MASTER_PORT={}", ::getpid())};
  testing::Invocation first = invocation(train("first", {"--start_timeout", "60"}));
  first.environment = joined(world, first.environment);
  const pid_t waiting = testing::start(first, path("stdout"), path("stderr"));
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(40);
  while (!is_waiting(fmt::format("zeroth-localhost-{}", ::getpid())) &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  refused_soon(zeroth(train("second"), world), 5, {"two processes have rank 0", "MASTER_PORT"});
  ::kill(waiting, SIGTERM);
  EXPECT_EQ(testing::wait_for(waiting), 128 + SIGTERM);
}

// Started without a launcher, N copies would each train alone.
TEST_F(RankInput, L08_AWorldWithoutARankIsRefused) {
  refused_soon(zeroth(train("out"), {"WORLD_SIZE=4"}),
               2,
               {"WORLD_SIZE=4 (environment) without RANK", "--ranks 4"});
  refused_soon(zeroth(train("out"), {"OMPI_COMM_WORLD_SIZE=4"}),
               2,
               {"OMPI_COMM_WORLD_SIZE=4 (environment) without OMPI_COMM_WORLD_RANK"});
  refused_soon(zeroth(train("out"), {"WORLD_SIZE=4", "RANK=4"}),
               2,
               {"RANK=4 (environment) is not below WORLD_SIZE=4"});
}

TEST_F(RankInput, L08_OneProcessSaysWhyItsWorldIsOne) {
  const testing::Outcome outcome = good(train("out", {"--max_steps", "1"}));
  EXPECT_NE(outcome.errors.find("world size 1"), std::string::npos) << outcome.errors;
  EXPECT_NE(outcome.errors.find("no RANK in the environment"), std::string::npos) << outcome.errors;
}

TEST_F(RankInput, L02_L05_HostsAndSlotsAreRefusedWithWhatToUse) {
  refused_soon(zeroth(train("out", {"--include", "localhost:0,1", "--num_gpus", "4"})),
               2,
               {"--include localhost:0,1: not supported", "use one of --ranks N", "mpirun --host"});
  refused_soon(zeroth(train("out", {"--include", "worker-1:8"})), 2, {"--include worker-1:8"});
  refused_soon(zeroth(train("out", {"--exclude", "worker-1"})), 2, {"--exclude worker-1"});
}

TEST_F(RankInput, L03_AHostfileIsRefusedWithWhatToUse) {
  refused_soon(zeroth(train("out", {"--hostfile", "/nope", "--num_nodes", "2"})),
               2,
               {"--hostfile /nope: not supported", "mpirun --hostfile FILE", "--num_nodes 2"});
}

TEST_F(RankInput, L07_APortHasNoEffectAndSaysWhy) {
  const testing::Outcome outcome =
      good(train("out", {"--master_port", "29500", "--ranks", "2", "--max_steps", "1"}));
  EXPECT_NE(outcome.errors.find("master_port 29500: there is no TCP"), std::string::npos)
      << outcome.errors;
}

// Hosts without a common file system: each reads its own copies, and rank 0's host has the result.
class TwoHosts : public RankInput {
 protected:
  void SetUp() override {
    if (!has_mpirun()) {
      GTEST_SKIP() << "needs mpirun";
    }
    RankInput::SetUp();
    for (const char* host : {"a", "b"}) {
      fs::create_directory(path(host));
      fs::copy(path("model"), path(host) / "model");
      fs::copy(path("rows.json"), path(host) / "rows.json");
    }
  }

  [[nodiscard]] testing::Outcome on_both(const Words& words) const {
    testing::Invocation invocation = under_mpirun({"a", "b"}, words);
    Words& line = invocation.arguments;
    for (const char* host : {"b", "a"}) {
      const auto place =
          std::find(line.begin(), line.end(), fmt::format("ZEROTH_HOST_ID={}", host));
      line.insert(place - 1, {"--wdir", path(host).string()});  // before env
    }
    return testing::run(invocation);
  }
};

TEST_F(TwoHosts, L12_NeedNoCommonFileSystem) {
  const testing::Outcome outcome = on_both(train("out", {"--zero_stage", "2"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_TRUE(fs::exists(path("a/out/adapter_model.safetensors")));
  EXPECT_FALSE(fs::exists(path("b/out")));
  EXPECT_FALSE(fs::exists(path("a/out/latest")));
  EXPECT_NE(outcome.errors.find("rank 1 does not see rank 0's output_dir out"), std::string::npos)
      << outcome.errors;
  refused_soon(on_both(train("saved", {"--save_steps", "2"})),
               6,
               {"rank 1 does not see rank 0's output_dir saved", "--save_strategy no"});
}

TEST_F(TwoHosts, L12_WithDifferentRowsAreRefused) {
  std::string rows = content_of(path("b/rows.json"));
  rows.replace(rows.find("say 3"), 5, "say 4");
  write("b/rows.json", rows);
  refused_soon(on_both(train("out")),
               3,
               {"the ranks have read different training rows: 24 on rank 0, 24 others on rank 1",
                "Every host needs the same files"});
}

// Waits between ranks have no limit of their own: only a dead rank ends them.
TEST_F(RankInput, L09_RankZeroMayPrepareLongerThanAnyTimeout) {
  const testing::Outcome outcome =
      zeroth(train("out", joined(cut(2, 1, 1, 2), {"--start_timeout", "1", "--ddp_timeout", "2"})),
             {"ZEROTH_TEST_STOP_AT=0:reading the data:pause"});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  EXPECT_NE(outcome.errors.find("ddp_timeout 2: a living rank is waited for"), std::string::npos)
      << outcome.errors;
  EXPECT_GT(outcome.seconds, 3);
  EXPECT_EQ(records_of(path("out"), "update").size(), 3U);
}

TEST_F(RankInput, L10_ARankThatEndsWithAFailureEndsAllAndIsNamedLast) {
  const testing::Outcome ended =
      zeroth(train("out", cut(4, 1, 1, 2)), {"ZEROTH_TEST_STOP_AT=2:forward of update 3:exit"});
  refused_soon(ended, 1, {"ranks 0, 1 and 3 stopped: communication error: rank 2 (pid "});
  const auto lines = split(trim(ended.errors), '\n');
  EXPECT_TRUE(lines.back().starts_with("internal error: rank 2 (process ")) << lines.back();
  EXPECT_TRUE(
      lines.back().ends_with("ended with code 1 and no word, busy with forward of update 3"))
      << lines.back();
  const testing::Outcome failed =
      zeroth(train("out", joined(cut(4, 1, 1, 2), {"--overwrite_output_dir"})),
             {"ZEROTH_TEST_STOP_AT=2:forward of update 3:fail"});
  refused_soon(failed, 3, {"ranks 0, 1 and 3 stopped: communication error: rank 2 (pid "});
  EXPECT_TRUE(
      failed.errors.ends_with("\nrank 2: data error: made to fail in forward of update 3\n"))
      << failed.errors;
}

TEST_F(RankInput, ATestHookThatSaysNothingIsRefused) {
  refused_soon(
      zeroth(train("out"), {"ZEROTH_TEST_STOP_AT=forward"}), 2, {"RANK:ACTIVITY", "Unset it"});
}

}  // namespace
}  // namespace zeroth::e2e
