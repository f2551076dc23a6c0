#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <sstream>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "comm/make.h"
#include "comm/test_support.h"
#include "process.h"
#include <gtest/gtest.h>
#include <unistd.h>

// Ranks as real processes: this program again, told by its environment which rank of which scenario
// it is. It never forks; children start by exec.
namespace zeroth::comm {
namespace {

namespace fs = std::filesystem;
using testing::Bytes;
using testing::Exercise;
using testing::exercise_on_threads;
using testing::fingerprint;
using zeroth::testing::Invocation;
using zeroth::testing::Outcome;
using zeroth::testing::TemporaryFolder;

constexpr const char* kVariable = "ZEROTH_COMM_TEST";

// What a child is to do, as one line of words.
struct Part {
  std::string scenario;
  std::string run_name;
  int rank = 0;
  int size = 1;
  double start_timeout_s = 20;
  std::string folder;

  [[nodiscard]] std::string text() const {
    return fmt::format(
        "{} {} {} {} {} {}", scenario, run_name, rank, size, start_timeout_s, folder);
  }
};

Part read_part(const std::string& text) {
  std::istringstream words(text);
  Part part;
  words >> part.scenario >> part.run_name >> part.rank >> part.size >> part.start_timeout_s >>
      part.folder;
  return part;
}

void write(const Part& part, std::int64_t rank, const std::string& text) {
  write_file_atomically(fs::path(part.folder) / fmt::format("rank-{}", rank), text);
}

// ---- what children do

void exercise(const Part& part, Communicator& comm) {
  write(part, comm.rank(), fingerprint(Exercise(comm).run()));
}

// All but rank 1 wait in a reduction; rank 1 waits to be killed.
void be_killed(const Part& part, Communicator& comm) {
  std::vector<float> values(1000);
  comm.all_reduce("norms", values).wait();
  comm.note("update 3");
  write(part, comm.rank(), std::to_string(::getpid()));
  if (comm.rank() == 1) {
    std::this_thread::sleep_for(std::chrono::seconds(30));
  }
  comm.barrier("end of update 3");
}

void differ(const Part& /*part*/, Communicator& comm) {
  std::vector<float> values(comm.rank() == 0 ? 2000 : 3000);
  comm.all_reduce("norms", values).wait();
}

void fail(const Part& /*part*/, Communicator& comm) {
  if (comm.rank() == 1) {
    const std::string reason = "row 17 of train.jsonl is broken";
    comm.abort(reason);
    throw Error(ErrorKind::kData, reason);
  }
  comm.barrier("after reading");
}

void take_too_much(const Part& /*part*/, Communicator& comm) {
  (void)comm.allocate(std::int64_t{1} << 50);
}

void play(const Part& part) {
  const bool by_mpi = part.scenario.starts_with("mpi_");
  const std::unique_ptr<Communicator> comm =
      by_mpi ? make_mpi_communicator(part.start_timeout_s)
             : make_host_communicator({.run_name = part.run_name,
                                       .rank = part.rank,
                                       .size = part.size,
                                       .start_timeout_s = part.start_timeout_s});
  const std::string scenario = by_mpi ? part.scenario.substr(4) : part.scenario;
  if (scenario == "exercise") {
    exercise(part, *comm);
  } else if (scenario == "be_killed") {
    be_killed(part, *comm);
  } else if (scenario == "differ") {
    differ(part, *comm);
  } else if (scenario == "fail") {
    fail(part, *comm);
  } else if (scenario == "take_too_much") {
    take_too_much(part, *comm);
  }
}

int run_child(const std::string& text) {
  try {
    play(read_part(text));
    return 0;
  } catch (const Error& error) {
    const std::string line = fmt::format("{}\n", error.what());
    return ::write(STDERR_FILENO, line.data(), line.size()) < 0 ? 1 : exit_code(error.kind());
  }
}

// ---- how tests start them

std::string unique_run_name() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return fmt::format("test-{}-{}", ::getpid(), now);
}

class Group {
 public:
  Group(std::string scenario, int size, double start_timeout_s = 20)
      : part_{.scenario = std::move(scenario),
              .run_name = unique_run_name(),
              .size = size,
              .start_timeout_s = start_timeout_s,
              .folder = folder_.path().string()} {}

  void start(int rank) {
    part_.rank = rank;
    const Invocation child{.arguments = {"/proc/self/exe"},
                           .environment = {fmt::format("{}={}", kVariable, part_.text())}};
    processes_[rank] = zeroth::testing::start(child, file("out", rank), file("err", rank));
  }

  void start_all() {
    for (int r = 0; r < part_.size; ++r) {
      start(r);
    }
  }

  [[nodiscard]] int wait(int rank) { return zeroth::testing::wait_for(processes_.at(rank)); }

  [[nodiscard]] pid_t pid(int rank) const { return processes_.at(rank); }

  [[nodiscard]] std::string errors(int rank) const {
    return read_file(file("err", rank), ErrorKind::kDisk);
  }

  [[nodiscard]] std::string result(int rank) const {
    return read_file(file("rank", rank), ErrorKind::kDisk);
  }

  void wait_for_result(int rank) const {
    while (!fs::exists(file("rank", rank))) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  [[nodiscard]] const Part& part() const { return part_; }

 private:
  [[nodiscard]] fs::path file(const std::string& kind, int rank) const {
    return folder_.path() / fmt::format("{}-{}", kind, rank);
  }

  TemporaryFolder folder_;
  Part part_;
  std::map<int, pid_t> processes_;
};

void expect_words(const std::string& text, const std::vector<std::string>& words) {
  for (const std::string& word : words) {
    EXPECT_NE(text.find(word), std::string::npos) << "'" << word << "' is not in: " << text;
  }
}

int named_entries() {
  int count = 0;
  for (const auto& entry : fs::directory_iterator("/dev/shm")) {
    count += entry.path().filename().string().starts_with("zeroth") ? 1 : 0;
  }
  return count;
}

std::vector<std::string> fingerprints_on_threads(int size) {
  std::vector<std::string> prints;
  for (const Bytes& bytes : exercise_on_threads(size)) {
    prints.push_back(fingerprint(bytes));
  }
  return prints;
}

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

TEST(Process, RunsBesideEachOtherDoNotMeet) {
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
                  "after operation 0, all_reduce 'norms'",
                  "busy with update 3",
                  "barrier 'end of update 3'"});
  }
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - began;
  EXPECT_LT(elapsed.count(), 2.0);
  EXPECT_EQ(run.wait(1), 128 + SIGKILL);
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

// ---- by mpirun

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
Outcome mpirun(const Part& part, const std::vector<std::string>& hosts) {
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
  return zeroth::testing::run(
      {.arguments = arguments,
       .environment = {fmt::format("{}={}", kVariable, part.text()),
                       "OMPI_ALLOW_RUN_AS_ROOT=1",
                       "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                       "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe"}});
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

int main(int argc, char** argv) {
  if (const char* part = std::getenv(zeroth::comm::kVariable)) {
    return zeroth::comm::run_child(part);
  }
  ::testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
