#include <filesystem>

#include "base/file.h"
#include "process.h"
#include <gtest/gtest.h>

// scripts/check_skips.sh: a test that was skipped counts against the run unless it is listed and
// its condition holds.
namespace zeroth::testing {
namespace {

namespace fs = std::filesystem;

constexpr auto kPassed = R"(<testsuite><testcase name="a.Good" time="0" status="run"></testcase>)";
constexpr auto kSkipped = R"(<testcase name="a.Data" time="0" status="notrun">
<system-out>needs ../folder
</system-out></testcase>)";

class CheckSkips : public ::testing::Test {
 protected:
  [[nodiscard]] Outcome check(const std::string& results) const {
    fs::create_directories(folder_.path() / "repository");
    write_file_atomically(folder_.path() / "results.xml", results + "</testsuite>");
    write_file_atomically(folder_.path() / "allowed.txt", "# remark\na.* | needs ../folder\n");
    return run({.arguments = {"/bin/sh",
                              ZEROTH_SOURCE_DIR "/scripts/check_skips.sh",
                              "../results.xml",
                              "../allowed.txt"},
                .input = "",
                .environment = {},
                .working_folder = folder_.path() / "repository"});
  }

  TemporaryFolder folder_;
};

TEST_F(CheckSkips, CountsWhatPassed) {
  const Outcome outcome = check(kPassed);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "tests: 1 passed, 0 failed, 0 skipped\n");
}

TEST_F(CheckSkips, AllowsAListedSkipWhileItsFolderIsAbsent) {
  const Outcome outcome = check(std::string(kPassed) + kSkipped);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "tests: 1 passed, 0 failed, 1 skipped\n");
}

TEST_F(CheckSkips, RefusesTheSkipWhereTheFolderIsThere) {
  fs::create_directories(folder_.path() / "folder");
  const Outcome outcome = check(std::string(kPassed) + kSkipped);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find("a.Data was skipped"), std::string::npos) << outcome.output;
}

TEST_F(CheckSkips, RefusesASkipForAnotherReason) {
  const Outcome outcome =
      check(std::string(kPassed) + R"(<testcase name="a.B" status="notrun">tired</testcase>)");
  EXPECT_EQ(outcome.exit_code, 1);
}

// A program that ctest runs as a whole is counted by what gtest printed.
constexpr auto kProgram = R"(<testcase name="a" time="0" status="run"><system-out>
[ RUN      ] Good.One
[       OK ] Good.One (3 ms)
[ RUN      ] Good.Every/0
[       OK ] Good.Every/0 (0 ms)
[ RUN      ] Data.Real
x_test.cpp:3: Skipped
needs ../folder

[  SKIPPED ] Data.Real (0 ms)
[==========] 3 tests from 2 test suites ran. (3 ms total)
[  PASSED  ] 2 tests.
[  SKIPPED ] 1 test, listed below:
[  SKIPPED ] Data.Real
</system-out></testcase>)";

TEST_F(CheckSkips, CountsTheTestsOfAWholeProgram) {
  const Outcome outcome = check(std::string(kPassed) + kProgram);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "tests: 3 passed, 0 failed, 1 skipped\n");
}

TEST_F(CheckSkips, RefusesASkipWithinAWholeProgram) {
  fs::create_directories(folder_.path() / "folder");
  const Outcome outcome = check(std::string(kPassed) + kProgram);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find("a.Data.Real was skipped"), std::string::npos) << outcome.output;
}

// The reason of one test is not that of the next.
TEST_F(CheckSkips, RefusesASkipWithoutAReasonBesideOneWithIt) {
  std::string two = kProgram;
  two.replace(two.find("[=="), 0, "[ RUN      ] Data.Bare\n[  SKIPPED ] Data.Bare (0 ms)\n");
  const Outcome outcome = check(std::string(kPassed) + two);
  EXPECT_EQ(outcome.exit_code, 1);
  EXPECT_NE(outcome.output.find("a.Data.Bare was skipped"), std::string::npos) << outcome.output;
  EXPECT_EQ(outcome.output.find("a.Data.Real was skipped"), std::string::npos) << outcome.output;
}

TEST_F(CheckSkips, CountsFailuresOfAWholeProgramAndItsDeath) {
  EXPECT_NE(check(R"(<testcase name="a" status="fail"><system-out>
[ RUN      ] Bad.One/2
[  FAILED  ] Bad.One/2, where GetParam() = 3 (4 ms)
[  FAILED  ] Bad.One/2
</system-out></testcase>)")
                .output.find("0 passed, 1 failed, 0 skipped"),
            std::string::npos);
  EXPECT_NE(check(R"(<testcase name="a" status="fail"><system-out>
[ RUN      ] Good.One
[       OK ] Good.One (3 ms)
[ RUN      ] Fatal.One
</system-out></testcase>)")
                .output.find("1 passed, 1 failed, 0 skipped"),
            std::string::npos);
}

TEST_F(CheckSkips, RefusesFailuresAndRunsWithoutTests) {
  EXPECT_EQ(
      check(std::string(kPassed) + R"(<testcase name="a.C" status="fail"></testcase>)").exit_code,
      1);
  EXPECT_EQ(check("<testsuite>").exit_code, 1);
}

}  // namespace
}  // namespace zeroth::testing
