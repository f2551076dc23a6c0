#include "config/reference_page.h"

#include <algorithm>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "config/support.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zeroth::config {
namespace {

// Written anew by: ninja -C BUILD zeroth_reference_page
//                  BUILD/tests/zeroth_reference_page > docs/configuration.md
TEST(ReferencePage, TheDocumentIsWhatTheDeclarationsSay) {
  const std::string document =
      read_file(kSourceDir / "docs" / "configuration.md", ErrorKind::kDisk);
  const std::vector<std::string> have = split(document, '\n');
  const std::vector<std::string> want = split(reference_page(), '\n');
  for (std::size_t i = 0; i < std::min(have.size(), want.size()); ++i) {
    ASSERT_EQ(have[i], want[i]) << "docs/configuration.md:" << i + 1;
  }
  EXPECT_EQ(have.size(), want.size());
}

TEST(ReferencePage, EveryKeyHasOneRowWithAllItsNames) {
  const std::vector<std::string> lines = split(reference_page(), '\n');
  for (const Declaration& key : schema()) {
    const std::string start = fmt::format("| `{}` |", key.name);
    const auto is_row = [&](const std::string& line) { return line.starts_with(start); };
    ASSERT_EQ(std::count_if(lines.begin(), lines.end(), is_row), 1) << key.name;
    const std::string& row = *std::find_if(lines.begin(), lines.end(), is_row);
    for (const std::string& name : all_names(key)) {
      EXPECT_TRUE(has(row, "`" + name + "`")) << key.name << " lacks " << name;
    }
  }
}

TEST(ReferencePage, NoRowIsTooLongToRead) {
  constexpr std::size_t kLongest = 900;
  for (const std::string& line : split(reference_page(), '\n')) {
    EXPECT_LE(line.size(), kLongest) << line;
  }
}

}  // namespace
}  // namespace zeroth::config
