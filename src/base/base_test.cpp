#include <algorithm>
#include <filesystem>

#include "base/atomic_file.h"
#include "base/check.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include <gtest/gtest.h>

namespace zeroth {
namespace {

TEST(Json, AnExcerptCutsNoCharacterAndShowsNoForeignBytes) {
  const auto message_of = [](const std::string& text) -> std::string {
    try {
      (void)parse_json(text, "rows.json", ErrorKind::kData);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  std::string wide = "[\"";
  for (int i = 0; i < 100; ++i) {
    wide += "\u4e2d";
  }
  for (int shift = 0; shift < 3; ++shift) {
    const std::string message = message_of(std::string(shift, ' ') + wide + "\" x" + wide);
    EXPECT_NO_THROW((void)Json(message).dump()) << message;  // throws for text that is not UTF-8
    EXPECT_NE(message.find("\u4e2d"), std::string::npos) << message;
  }
  const std::string message = message_of("\x1b[31m\xff\xfe");
  EXPECT_EQ(message.find('\x1b'), std::string::npos) << message;
  EXPECT_EQ(message.find('\xff'), std::string::npos) << message;
}

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

TEST(File, APiecewiseFileAppearsWithItsLastWordOrNotAtAll) {
  const auto folder = std::filesystem::temp_directory_path() / "zeroth_atomic_file_test";
  std::filesystem::create_directories(folder);
  const auto bytes = [](std::string_view text) { return std::as_bytes(std::span(text)); };
  {
    AtomicFile file(folder / "a");
    file.append(bytes("one ???"));
    file.append(bytes(" three"));
    file.overwrite(4, bytes("two"));
    EXPECT_FALSE(std::filesystem::exists(folder / "a"));
    file.publish();
  }
  EXPECT_EQ(read_file(folder / "a", ErrorKind::kDisk), "one two three");
  {
    AtomicFile file(folder / "a");
    file.append(bytes("half"));
  }
  EXPECT_EQ(read_file(folder / "a", ErrorKind::kDisk), "one two three");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  std::filesystem::remove_all(folder);
}

// Blocks of 8 MiB are written while the next is made; what is overwritten may lie in several.
TEST(File, ALargeFileHasEveryByteInItsPlace) {
  constexpr std::size_t kBlock = std::size_t{8} << 20;
  const auto folder = std::filesystem::temp_directory_path() / "zeroth_large_file_test";
  std::filesystem::create_directories(folder);
  for (const std::size_t size : {kBlock - 1, kBlock, kBlock + 1, 3 * kBlock + 12345}) {
    std::string content(size, '\0');
    for (std::size_t i = 0; i < size; ++i) {
      content[i] = static_cast<char>(i * 2654435761U >> 13);
    }
    AtomicFile file(folder / "a");
    for (std::size_t begin = 0; begin < size; begin += 1'000'003) {
      file.append(std::as_bytes(
          std::span(content).subspan(begin, std::min(size - begin, std::size_t{1'000'003}))));
    }
    for (const std::size_t place : {std::size_t{5}, kBlock - 6, size - 10}) {
      const std::string word = "overwrite";
      content.replace(place, word.size(), word);
      file.overwrite(place,
                     std::as_bytes(std::span(word)).first(std::min(word.size(), size - place)));
      content.resize(size);
    }
    file.publish();
    EXPECT_TRUE(read_file(folder / "a", ErrorKind::kDisk) == content) << size;
  }
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
