#include <filesystem>

#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include <gtest/gtest.h>

namespace zeroth {
namespace {

TEST(Json, SyntaxErrorNamesLineAndColumn) {
  try {
    (void)parse_json("{\n  \"a\": 1,\n  \"b\": }\n", "ds.json", ErrorKind::kConfig);
    FAIL() << "accepted broken JSON";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(std::string(error.what()).find("ds.json:3:8"), std::string::npos) << error.what();
  }
}

TEST(Json, ANumberOutOfRangeIsOurError) {
  EXPECT_THROW((void)parse_json("[1e999]", "ds.json", ErrorKind::kConfig), Error);
}

TEST(Text, NearestFindsTheMisspeltName) {
  const std::vector<std::string> names{"learning_rate", "lora_rank", "max_steps"};
  EXPECT_EQ(nearest("lerning_rate", names).front(), "learning_rate");
  EXPECT_TRUE(nearest("zzzz", names).empty());
}

TEST(File, AFailedWriteLeavesTheOldContent) {
  const auto folder = std::filesystem::temp_directory_path() / "zeroth_file_test";
  std::filesystem::create_directories(folder);
  write_file_atomically(folder / "a", "first");
  write_file_atomically(folder / "a", "second");
  EXPECT_EQ(read_file(folder / "a", ErrorKind::kDisk), "second");
  EXPECT_THROW(write_file_atomically(folder / "missing" / "a", "x"), Error);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

TEST(Check, PrintsBothOperands) {
  try {
    ZEROTH_CHECK_EQ(1 + 1, 3, "sums");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("(2 != 3)"), std::string::npos);
    EXPECT_EQ(exit_code(error.kind()), 70);
  }
}

}  // namespace
}  // namespace zeroth
