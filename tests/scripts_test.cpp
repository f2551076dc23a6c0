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

TEST_F(CheckSkips, RefusesFailuresAndRunsWithoutTests) {
  EXPECT_EQ(
      check(std::string(kPassed) + R"(<testcase name="a.C" status="fail"></testcase>)").exit_code,
      1);
  EXPECT_EQ(check("<testsuite>").exit_code, 1);
}

}  // namespace
}  // namespace zeroth::testing
