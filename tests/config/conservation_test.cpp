// No leaf of a real file is lost: each is in the account, by an independent count.
#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "config/account.h"
#include "config/leaf_reader.h"
#include "config/support.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zeroth::config {
namespace {

using Strings = std::vector<std::string>;

TEST(LeafReader, CountsScalarsListsAndEmptyBlocks) {
  EXPECT_EQ(leaves_of_json(R"({"a": {"b": 1, "c": [1, {"x": 2}]}, // d
                               "e": {}, /* "f": 1, */ "g": null,})"),
            (Strings{"a.b", "a.c", "e", "g"}));
  EXPECT_EQ(leaves_of_json(R"({"a\"}": "{\"b\": 1}", "c": -1e-5})"), (Strings{"a\"}", "c"}));
  EXPECT_EQ(leaves_of_json("{}"), Strings{});
  EXPECT_EQ(leaves_of_yaml("a:\n  b: 1\n  c: [1, 2]\nd: {}\ne:\n"),
            (Strings{"a.b", "a.c", "d", "e"}));
}

TEST(Balance, TellsWhatIsLostAndWhatIsInvented) {
  const std::vector<Written> account{
      {.path = "a", .value = 1, .source = "f:1"},
      {.path = "m", .value = {{"x", 1}, {"y", 2}}, .source = "f:2", .num_leaves = 2},
      {.path = "z", .value = 1, .source = "f:3"}};
  const Balance found = balance({"a", "a", "m.x", "m.y"}, account);
  EXPECT_EQ(found.lost, Strings{"a"});
  EXPECT_EQ(found.invented, Strings{"z"});
  EXPECT_EQ(num_leaves(account), 4U);
}

Strings leaves_in(const RealFile& file) {
  const std::string text = read_file(file.path, ErrorKind::kDisk);
  return file.path.extension() == ".json" ? leaves_of_json(text) : leaves_of_yaml(text);
}

TEST(Conservation, EveryLeafOfEveryRealFileIsAccountedFor) {
  const std::vector<RealFile> files = real_files();
  if (files.empty()) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  EXPECT_EQ(files.size(), 134U);
  std::size_t total = 0;
  std::map<std::string, std::size_t> outcomes;
  for (const RealFile& file : files) {
    const Strings leaves = leaves_in(file);
    const Resolution resolution = check_file(file.dialect, file.path.string());
    const std::vector<Written> account = account_of(resolution, file.path.string());
    EXPECT_GT(leaves.size(), 0U) << file.name;
    EXPECT_EQ(num_leaves(account), leaves.size()) << file.name;
    const Balance found = balance(leaves, account);
    EXPECT_TRUE(found.lost.empty()) << file.name << " lost " << join(found.lost, ", ");
    EXPECT_TRUE(found.invented.empty()) << file.name << " has " << join(found.invented, ", ");
    total += leaves.size();
    for (const Written& written : account) {
      outcomes[name_of(written.outcome)] += written.num_leaves;
      EXPECT_TRUE(written.outcome == Outcome::kInForce || !written.note.empty())
          << file.name << ": " << written.path << " " << name_of(written.outcome);
    }
  }
  fmt::print("{} leaves of {} files", total, files.size());
  for (const auto& [outcome, count] : outcomes) {
    fmt::print(", {} {}", count, outcome);
  }
  fmt::print("\n");
}

// A whole file that is not there is refused by its name; there is no line to it.
bool is_about_a_file(const Problem& problem) {
  return problem.kind == ProblemKind::kFile;
}

void expect_complete(const RealFile& file, const Written& refused, const Problems& problems) {
  const auto& all = problems.all();
  const bool named = std::any_of(all.begin(), all.end(), [&](const Problem& problem) {
    const Json& value = refused.value;
    const std::string shown_value = value.is_structured() ? "" : shown(value);
    const std::string& message = problem.message;
    const std::size_t bare = refused.path.size() + shown_value.size() + refused.source.size();
    return has(message, refused.path) && has(message, shown_value) &&
           has(message, refused.source) && message.size() > bare + 15;
  });
  EXPECT_TRUE(named) << file.name << ": " << refused.path << " " << refused.value << " at "
                     << refused.source << " (" << refused.note << ") in" << messages(problems);
}

TEST(Conservation, EveryRefusalNamesKeyValueLineAndReason) {
  const std::vector<RealFile> files = real_files();
  if (files.empty()) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  std::size_t num_refused = 0;
  for (const RealFile& file : files) {
    const Resolution resolution = check_file(file.dialect, file.path.string());
    for (const Written& written : account_of(resolution, file.path.string())) {
      if (written.outcome == Outcome::kRefused) {
        expect_complete(file, written, resolution.problems);
        ++num_refused;
      }
    }
    for (const Problem& problem : resolution.problems.all()) {
      EXPECT_FALSE(problem.sources.empty()) << file.name << ": " << problem.message;
      EXPECT_TRUE(is_about_a_file(problem) || !problem.key.empty()) << problem.message;
      for (const std::string& source : problem.sources) {
        EXPECT_TRUE(has(problem.message, source)) << file.name << ": " << problem.message;
      }
    }
  }
  fmt::print("{} refused values, each named with its line and reason\n", num_refused);
}

}  // namespace
}  // namespace zeroth::config
