#include <algorithm>
#include <array>
#include <cctype>

#include "base/file.h"
#include "case_file.h"
#include "process.h"
#include <gtest/gtest.h>

namespace zeroth::testing {
namespace {

namespace fs = std::filesystem;

const fs::path kCases = fs::path(ZEROTH_SOURCE_DIR) / "tests" / "cli";
const fs::path kData = fs::path(ZEROTH_SOURCE_DIR) / ".." / "shared" / "data";

class CliCase : public ::testing::Test {
 public:
  explicit CliCase(fs::path path) : path_(std::move(path)) {}

  void TestBody() override {
    const CaseFile test = read_case(path_, kData);
    if (!test.needs.empty() && !fs::exists(fs::path(ZEROTH_SOURCE_DIR) / test.needs)) {
      GTEST_SKIP() << "needs " << test.needs;
    }
    const TemporaryFolder folder;
    for (const CaseFile::File& file : test.files) {
      fs::create_directories((folder.path() / file.name).parent_path());
      write_file_atomically(folder.path() / file.name, file.content);
    }
    Invocation invocation{.arguments = {ZEROTH_PROGRAM},
                          .input = test.input,
                          .environment = test.environment,
                          .working_folder = folder.path()};
    invocation.arguments.insert(
        invocation.arguments.end(), test.arguments.begin(), test.arguments.end());
    check(test, invocation);
  }

 private:
  static void check(const CaseFile& test, const Invocation& invocation) {
    const Outcome outcome = run(invocation);
    const std::string streams = "output:\n" + outcome.output + "errors:\n" + outcome.errors;
    EXPECT_EQ(outcome.exit_code, test.exit_code) << streams;
    if (!test.output.empty()) {
      EXPECT_EQ(outcome.output, test.output) << streams;
    }
    for (const std::string& part : test.output_parts) {
      EXPECT_NE(outcome.output.find(part), std::string::npos) << part << "\n" << streams;
    }
    for (const std::string& part : test.error_parts) {
      EXPECT_NE(outcome.errors.find(part), std::string::npos) << part << "\n" << streams;
    }
    for (const std::string& part : test.absent_parts) {
      EXPECT_EQ(streams.find(part), std::string::npos) << part << "\n" << streams;
    }
    if (test.within_ms > 0) {
      EXPECT_LT(quickest_ms(invocation, outcome), test.within_ms);
    }
  }

  // The quickest of five, since other programs may hold the processor.
  static double quickest_ms(const Invocation& invocation, const Outcome& first) {
    double seconds = first.seconds;
    for (int i = 0; i < 4; ++i) {
      seconds = std::min(seconds, run(invocation).seconds);
    }
    return 1000 * seconds;
  }

  fs::path path_;
};

std::string test_name(const fs::path& path) {
  std::string name = path.stem().string();
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
}

// Registered by hand: gtest's parameter names cannot be read from a folder before main.
const int kRegistered = [] {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::directory_iterator(kCases)) {
    if (entry.path().extension() == ".case") {
      paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  for (const fs::path& path : paths) {
    ::testing::RegisterTest("Cli",
                            test_name(path).c_str(),
                            nullptr,
                            nullptr,
                            path.c_str(),
                            1,
                            [path]() -> ::testing::Test* { return new CliCase(path); });
  }
  return static_cast<int>(paths.size());
}();

TEST(CliCases, ThereAreSome) {
  EXPECT_GT(kRegistered, 10);
}

TEST(Front, DoesNotLinkTheEngine) {
  const std::array<const char*, 3> engine{"libtorch", "libc10", "libdnnl"};
  const Outcome outcome = run({.arguments = {"/usr/bin/ldd", ZEROTH_PROGRAM},
                               .input = "",
                               .environment = {},
                               .working_folder = {}});
  EXPECT_EQ(outcome.exit_code, 0) << outcome.errors;
  for (const char* library : engine) {
    EXPECT_EQ(outcome.output.find(library), std::string::npos) << outcome.output;
  }
}

}  // namespace
}  // namespace zeroth::testing
