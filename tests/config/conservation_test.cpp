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

// What people write that is easily lost.
TEST(Conservation, AwkwardDocumentsLoseNothing) {
  const std::vector<std::string> documents{
      R"({"train_batch_size": 8, "train_batch_size": 8})",
      R"({"fp16": {"enabled": false}, "fp16": {"enabled": false, "loss_scale": 0}})",
      R"({"_note": {"a": 1, "b": {"c": [1], "d": null}}, "zero_optimization": {}})",
      R"({"zero_optimization": {"stage": 2, "_stage": 3, "offload_optimizer": null}})",
      R"({"optimizer": [], "scheduler": 7, "unknown": {"a": 1, "b": {}}})",
      R"({"tensorboard": {"enabled": "yes please", "output_path": 5}, "bf16": true})"};
  for (const std::string& document : documents) {
    const std::string file = scratch_file("awkward.json", document);
    const Resolution resolution = check_file(Dialect::kDeepSpeed, file);
    const Balance found = balance(leaves_of_json(document), account_of(resolution, file));
    EXPECT_TRUE(found.lost.empty()) << document << " lost " << join(found.lost, ", ");
    EXPECT_TRUE(found.invented.empty()) << document << " has " << join(found.invented, ", ");
  }
}

// There the paths start from the block.
TEST(Conservation, ADeepSpeedConfigWrittenInPlaceLosesNothing) {
  for (const std::string document : {"deepspeed: {}\n",
                                     "deepspeed: {zero_optimization: {stage: 1}, bf16: {}}\n",
                                     "deepspeed:\n  steps_per_print: 5\n  nonsense: 1\n"}) {
    const std::string file = scratch_file("in_place.yaml", document);
    const Resolution resolution = check_file(Dialect::kRecipe, file);
    EXPECT_EQ(num_leaves(account_of(resolution, file)), leaves_of_yaml(document).size())
        << document;
  }
}

// A whole file that is not there is refused by its name; there is no line to it.
bool is_about_a_file(const Problem& problem) {
  return problem.kind == ProblemKind::kFile;
}

// What a key that nobody knows is set to says nothing, nor does what stands there a second time.
std::string value_in_message(const Json& value, const Problem& problem) {
  const bool about_the_key = problem.kind == ProblemKind::kUnknown ||
                             problem.kind == ProblemKind::kMisplaced ||
                             problem.kind == ProblemKind::kDuplicate;
  return value.is_structured() || about_the_key ? "" : shown(value);
}

// "f.json:3", or in a duplicate's message "f.json: ... (lines 3 and 5)".
bool names_place(const Problem& problem, const std::string& source) {
  const auto colon = source.rfind(':');
  const bool by_lines = problem.kind == ProblemKind::kDuplicate &&
                        has(problem.message, source.substr(0, colon)) &&
                        has(problem.message, source.substr(colon + 1));
  return by_lines || has(problem.message, source);
}

void expect_complete(const RealFile& file, const Written& refused, const Problems& problems) {
  const auto& all = problems.all();
  const bool named = std::any_of(all.begin(), all.end(), [&](const Problem& problem) {
    const std::string shown_value = value_in_message(refused.value, problem);
    const std::string& message = problem.message;
    const std::size_t bare = refused.path.size() + shown_value.size() + refused.source.size();
    return has(message, refused.path) && has(message, shown_value) &&
           names_place(problem, refused.source) && message.size() > bare + 15;
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
        EXPECT_TRUE(names_place(problem, source)) << file.name << ": " << problem.message;
      }
    }
  }
  fmt::print("{} refused values, each named with its line and reason\n", num_refused);
}

}  // namespace
}  // namespace zeroth::config
