#include <chrono>
#include <csignal>
#include <cstdlib>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "comm/test_processes.h"
#include <gtest/gtest.h>
#include <unistd.h>

// Ranks that mpirun starts; ZEROTH_HOST_ID makes them believe that they run on several hosts.
namespace zeroth::comm {
namespace {

using namespace testing;  // NOLINT(google-build-using-namespace): this folder's test helpers

// Where a program lies on PATH; empty if it does not.
std::string find_program(const std::string& name) {
  std::istringstream folders(std::getenv("PATH") == nullptr ? "" : std::getenv("PATH"));
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((fs::path(folder) / name).c_str(), X_OK) == 0) {
      return fs::path(folder) / name;
    }
  }
  return "";
}

// Ranks in order, each with the host it is to believe that it runs on.
Invocation mpirun_of(const Part& part, const std::vector<std::string>& hosts) {
  std::vector<std::string> arguments = {
      find_program("mpirun"), "--oversubscribe", "--allow-run-as-root", "--bind-to", "none"};
  for (std::size_t r = 0; r < hosts.size(); ++r) {
    if (r > 0) {
      arguments.emplace_back(":");
    }
    for (const std::string& word : {std::string("-n"),
                                    std::string("1"),
                                    std::string("-x"),
                                    "ZEROTH_HOST_ID=" + hosts[r],
                                    std::string("-x"),
                                    std::string(kVariable),
                                    fs::read_symlink("/proc/self/exe").string()}) {
      arguments.push_back(word);
    }
  }
  std::vector<std::string> environment = zeroth::testing::mpirun_environment();
  environment.push_back(fmt::format("{}={}", kVariable, part.text()));
  return {.arguments = arguments, .environment = environment};
}

Outcome mpirun(const Part& part, const std::vector<std::string>& hosts) {
  return zeroth::testing::run(mpirun_of(part, hosts));
}

class Mpi : public ::testing::Test {
 protected:
  void SetUp() override {
    if (find_program("mpirun").empty()) {
      GTEST_SKIP() << "needs mpirun";
    }
  }

  void expect_bits_of_threads(const std::vector<std::string>& hosts) {
    const Part part{.scenario = "mpi_exercise", .run_name = "-", .folder = folder_.path().string()};
    const Outcome outcome = mpirun(part, hosts);
    ASSERT_EQ(outcome.exit_code, 0) << outcome.errors;
    const auto expected = fingerprints_on_threads(static_cast<int>(hosts.size()));
    for (std::size_t r = 0; r < hosts.size(); ++r) {
      EXPECT_EQ(read_file(folder_.path() / fmt::format("rank-{}", r), ErrorKind::kDisk),
                expected[r])
          << "rank " << r;
    }
  }

  TemporaryFolder folder_;
};

TEST_F(Mpi, TwoHostsOfTwoGiveTheBitsOfThreads) {
  expect_bits_of_threads({"a", "a", "b", "b"});
}

TEST_F(Mpi, RanksDealtToHostsInTurnGiveTheBitsOfThreads) {
  expect_bits_of_threads({"a", "b", "a"});
}

TEST_F(Mpi, OneHostGivesTheBitsOfThreads) {
  expect_bits_of_threads({"a", "a"});
}

TEST_F(Mpi, AKilledRankEndsTheRun) {
  const Part part{.scenario = "mpi_be_killed", .run_name = "-", .folder = folder_.path().string()};
  const pid_t launcher = zeroth::testing::start(
      mpirun_of(part, {"a", "b", "a"}), folder_.path() / "out", folder_.path() / "err");
  const fs::path victim = folder_.path() / "rank-1";
  while (!fs::exists(victim)) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  const auto began = std::chrono::steady_clock::now();
  ::kill(std::stoi(read_file(victim, ErrorKind::kDisk)), SIGKILL);
  EXPECT_NE(zeroth::testing::wait_for(launcher), 0);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began;
  EXPECT_LT(elapsed.count(), 10.0);
  EXPECT_EQ(named_entries(), 0);
}

TEST_F(Mpi, DifferingCallsAreNamedOnBothSides) {
  const Part part{.scenario = "mpi_differ", .run_name = "-", .folder = folder_.path().string()};
  const Outcome outcome = mpirun(part, {"a", "b"});
  EXPECT_EQ(outcome.exit_code, exit_code(ErrorKind::kCommunication));
  expect_words(outcome.errors,
               {"rank 0 called all_reduce 'norms' (2000 floats)",
                "rank 1 called all_reduce 'norms' (3000 floats)"});
}

}  // namespace
}  // namespace zeroth::comm
