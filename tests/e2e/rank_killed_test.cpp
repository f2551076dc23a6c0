#include <chrono>
#include <ctime>

#include "base/text.h"
#include "e2e/ranks.h"
#include <fmt/format.h>

// Ranks that die at a chosen moment: the others end soon, one message names the rank and what it
// was doing, and nothing stays behind (RankTest looks for processes and shared memory).
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

constexpr double kSoon = 10;  // seconds; half a one was seen

struct Death {
  int ranks = 2;
  int victim = 1;
  int stage = 2;
  std::string activity;
};

class RankKilled : public RankTest {
 protected:
  void expect_named(const testing::Outcome& outcome, const Death& death) const {
    EXPECT_EQ(outcome.exit_code, 6) << outcome.errors;
    EXPECT_LT(seconds_after_last_record(), kSoon);
    const std::string named = fmt::format("memory error: rank {} (process ", death.victim);
    const std::size_t at = outcome.errors.find(named);
    ASSERT_NE(at, std::string::npos) << outcome.errors;
    EXPECT_EQ(outcome.errors.find(named, at + 1), std::string::npos) << outcome.errors;
    const std::string message = outcome.errors.substr(at, outcome.errors.find('\n', at) - at);
    EXPECT_TRUE(
        message.ends_with(") was killed by signal 9 (out of memory?), busy with " + death.activity))
        << message;
  }

  void expect_result(bool complete) const {
    EXPECT_EQ(fs::exists(path("out/adapter_config.json")), complete);
    EXPECT_EQ(fs::exists(path("out/adapter_model.safetensors")), complete);
    for (const auto& entry : fs::directory_iterator(path("out"))) {
      const std::string name = entry.path().filename().string();
      EXPECT_FALSE(name.starts_with(".") || name.ends_with(".tmp")) << name << " is left";
    }
  }

  [[nodiscard]] bool has_checkpoint() const { return fs::exists(path("out/latest")); }

  void kill_by_ranks(const Death& death) const {
    SCOPED_TRACE(fmt::format("rank {} of {}, stage {}", death.victim, death.ranks, death.stage));
    const testing::Outcome outcome = zeroth(
        train("out", joined(cut(death.ranks, 1, 2, death.stage), {"--overwrite_output_dir"})),
        {fmt::format("ZEROTH_TEST_STOP_AT={}:{}", death.victim, death.activity)});
    expect_named(outcome, death);
    // What the others met is one line, before the cause.
    EXPECT_LT(outcome.errors.find(" stopped: communication error: rank "),
              outcome.errors.find("memory error: "))
        << outcome.errors;
    // Last comes the way out: less memory, or going on from a checkpoint that stands.
    const std::string goes_on =
        has_checkpoint() ? "latest goes on from it\n" : "--per_device_train_batch_size.\n";
    EXPECT_TRUE(outcome.errors.ends_with(goes_on)) << outcome.errors;
  }

  void kill_under_mpirun(const Words& hosts, const Death& death) const {
    if (!has_mpirun()) {
      GTEST_SKIP() << "needs mpirun";
    }
    testing::Invocation invocation = under_mpirun(hosts, train("out", {"--zero_stage", "2"}));
    invocation.environment.push_back(
        fmt::format("ZEROTH_TEST_STOP_AT={}:{}", death.victim, death.activity));
    expect_named(testing::run(invocation), death);
  }

 private:
  // Rank 0 wrote it shortly before the chosen moment.
  [[nodiscard]] double seconds_after_last_record() const {
    const auto written = fs::last_write_time(path("out/metrics.jsonl"));
    return std::chrono::duration<double>(fs::file_time_type::clock::now() - written).count();
  }
};

TEST_F(RankKilled, InForward) {
  kill_by_ranks({.victim = 0, .stage = 0, .activity = "forward of update 2"});
  kill_by_ranks({.victim = 1, .stage = 3, .activity = "forward of update 2"});
}

TEST_F(RankKilled, InBackwardOfFour) {
  kill_by_ranks({.ranks = 4, .victim = 2, .stage = 3, .activity = "backward of update 2"});
}

TEST_F(RankKilled, InReduction) {
  kill_by_ranks({.victim = 0, .stage = 2, .activity = "reduction of update 2"});
  kill_by_ranks({.victim = 1, .stage = 1, .activity = "reduction of update 2"});
}

TEST_F(RankKilled, InStep) {
  kill_by_ranks({.victim = 0, .stage = 3, .activity = "step of update 2"});
  kill_by_ranks({.victim = 1, .stage = 0, .activity = "step of update 2"});
}

TEST_F(RankKilled, InSave) {
  kill_by_ranks({.victim = 0, .stage = 2, .activity = "save of update 3"});
  expect_result(false);
  kill_by_ranks({.victim = 1, .stage = 3, .activity = "save of update 3"});
  expect_result(false);
  // Rank 0 holds the whole at stage 0, and writes it.
  kill_by_ranks({.victim = 1, .stage = 0, .activity = "save of update 3"});
  expect_result(true);
}

TEST_F(RankKilled, InForwardUnderMpirun) {
  kill_under_mpirun({"a", "a"}, {.activity = "forward of update 2"});
}

TEST_F(RankKilled, InReductionUnderMpirunBetweenHosts) {
  kill_under_mpirun({"a", "b"}, {.activity = "reduction of update 2"});
}

TEST_F(RankKilled, InStepUnderMpirunBetweenHosts) {
  kill_under_mpirun({"a", "b"}, {.victim = 0, .activity = "step of update 2"});
}

TEST_F(RankKilled, InSaveUnderMpirun) {
  kill_under_mpirun({"a", "a"}, {.activity = "save of update 3"});
}

}  // namespace
}  // namespace zeroth::e2e
