#include "offload/choose_io.h"

#include "base/error.h"
#include <gtest/gtest.h>

namespace zeroth::offload {
namespace {

namespace fs = std::filesystem;

TEST(ChooseIo, MeasuresBothAndSaysWhatItTook) {
  const ChosenIo chosen = choose_io(fs::temp_directory_path(), {}, std::nullopt, 1 << 20);
  ASSERT_NE(chosen.io, nullptr);
  EXPECT_GT(chosen.speed.read_bytes_per_s, 0);
  EXPECT_GT(chosen.speed.write_bytes_per_s, 0);
  EXPECT_NE(chosen.text.find(chosen.io->name()), std::string::npos) << chosen.text;
  EXPECT_NE(chosen.text.find("page cache"), std::string::npos) << chosen.text;
}

TEST(ChooseIo, TheAskedKindIsTaken) {
  const ChosenIo chosen =
      choose_io(fs::temp_directory_path(), {.threads = 2}, IoKind::kThreads, 1 << 20);
  EXPECT_EQ(chosen.io->name(), "pread and pwrite by 2 threads");
  EXPECT_EQ(chosen.speed.read_bytes_per_s, 0);
}

TEST(ChooseIo, AWrongFolderIsAnError) {
  EXPECT_THROW((void)choose_io("/nowhere/at/all", {}, std::nullopt, 1 << 20), Error);
  EXPECT_THROW((void)choose_io("/nowhere/at/all", {}, IoKind::kThreads, 1 << 20), Error);
}

}  // namespace
}  // namespace zeroth::offload
