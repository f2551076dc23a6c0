#include <filesystem>

#include "process.h"
#include <gtest/gtest.h>

// The installed tree, used by a project that knows nothing else.
namespace zeroth::testing {
namespace {

namespace fs = std::filesystem;

Outcome run_words(std::vector<std::string> words) {
  return run({.arguments = std::move(words), .input = "", .environment = {}, .working_folder = {}});
}

::testing::AssertionResult succeeded(const Outcome& outcome) {
  return outcome.exit_code == 0 ? ::testing::AssertionSuccess()
                                : ::testing::AssertionFailure() << outcome.output << outcome.errors;
}

TEST(Install, AProgramBuildsAndRunsAgainstTheInstalledTree) {
  const TemporaryFolder folder;
  const std::string prefix = folder.path() / "prefix";
  const std::string build = folder.path() / "build";
  ASSERT_TRUE(
      succeeded(run_words({ZEROTH_CMAKE, "--install", ZEROTH_BINARY_DIR, "--prefix", prefix})));
  for (const char* file : {"bin/zeroth",
                           "bin/zeroth-worker",
                           "include/zeroth/zeroth.h",
                           "include/zeroth/torch_module.h",
                           "lib/libzeroth.a",
                           "lib/cmake/zeroth/zerothConfig.cmake"}) {
    EXPECT_TRUE(fs::exists(fs::path(prefix) / file)) << file;
  }
  EXPECT_FALSE(fs::exists(fs::path(prefix) / "include/base"));  // the public headers alone
  ASSERT_TRUE(succeeded(run_words({ZEROTH_CMAKE,
                                   "-S",
                                   std::string(ZEROTH_SOURCE_DIR) + "/tests/library/consumer",
                                   "-B",
                                   build,
                                   "-G",
                                   "Ninja",
                                   "-DCMAKE_PREFIX_PATH=" + prefix})));
  ASSERT_TRUE(succeeded(run_words({ZEROTH_CMAKE, "--build", build})));
  const Outcome alone = run_words({build + "/consumer"});
  ASSERT_TRUE(succeeded(alone));
  EXPECT_EQ(alone.output, "w 2.997 after 10 updates\n");
  const Outcome launched =
      run_words({prefix + "/bin/zeroth", "launch", "--ranks", "1", "--", build + "/consumer"});
  ASSERT_TRUE(succeeded(launched));
  EXPECT_EQ(launched.output, alone.output);
}

}  // namespace
}  // namespace zeroth::testing
