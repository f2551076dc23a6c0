// Mutation of names, generated from the schema: each key of each kind of file misspelt by one
// letter, and at a level where it does not belong.
#include <algorithm>
#include <optional>
#include <set>

#include "config/sample_values.h"
#include "config/support.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zeroth::config {
namespace {

constexpr Dialect kAllDialects[] = {Dialect::kDeepSpeed, Dialect::kAccelerate, Dialect::kRecipe};

std::string leaf_of(const std::string& path) {
  return path.substr(path.rfind('.') + 1);  // npos + 1 == 0
}

std::string parent_of(const std::string& path) {
  const auto dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string below(const std::string& parent, const std::string& leaf) {
  return parent.empty() ? leaf : parent + "." + leaf;
}

// Every path of the dialect that leads to a block.
std::set<std::string> blocks_of(Dialect dialect) {
  std::set<std::string> blocks;
  for (const std::string& path : paths_in(dialect)) {
    for (std::string parent = parent_of(path); !parent.empty(); parent = parent_of(parent)) {
      blocks.insert(parent);
    }
  }
  return blocks;
}

std::set<std::string> all_leaves(Dialect dialect) {
  std::set<std::string> leaves;
  for (const std::string& path : paths_in(dialect)) {
    leaves.insert(leaf_of(path));
  }
  return leaves;
}

// A letter left out, doubled, exchanged with the next, replaced.
std::vector<std::string> misspelt(const std::string& word) {
  const std::size_t middle = word.size() / 2;
  std::string dropped = word;
  dropped.erase(middle, 1);
  std::string doubled = word;
  doubled.insert(middle, 1, word[middle]);
  std::string swapped = word;
  std::swap(swapped[middle - (middle > 0 ? 1 : 0)], swapped[middle]);
  std::string replaced = word;
  replaced[middle] = word[middle] == 'q' ? 'z' : 'q';
  std::vector<std::string> words;
  for (const std::string& wrong : {dropped, doubled, swapped, replaced}) {
    if (!wrong.empty() && wrong != word && wrong.front() != '_') {
      words.push_back(wrong);
    }
  }
  return words;
}

class Misspelling {
 public:
  explicit Misspelling(Dialect dialect) : dialect_(dialect), leaves_(all_leaves(dialect)) {}

  void try_all(const std::string& path) {
    const std::vector<std::string> all = misspelt(leaf_of(path));
    for (std::size_t i = path.size() % kStep; i < all.size(); i += kStep) {
      const std::string& wrong = all[i];
      const std::string wrong_path = below(parent_of(path), wrong);
      if (is_a_word(wrong, wrong_path)) {
        ++other_keys;
        continue;
      }
      ++tried;
      expect_suggestion(wrong_path, path);
    }
  }

  std::size_t tried = 0;
  std::size_t other_keys = 0;  // misspelt into another key

  // Every other way, which is enough: each name has two, and each way hundreds of names.
  static constexpr std::size_t kStep = 2;

 private:
  [[nodiscard]] bool is_a_word(const std::string& wrong, const std::string& wrong_path) const {
    return leaves_.contains(wrong) || is_block(dialect_, wrong_path) ||
           find_declaration(wrong) != nullptr || find_declaration(wrong_path) != nullptr;
  }

  void expect_suggestion(const std::string& wrong_path, const std::string& right_path) const {
    const Reading reading = reading_of(dialect_, wrong_path, 1);
    ASSERT_EQ(reading.problems.size(), 1U) << wrong_path;
    const Problem& problem = reading.problems.front();
    EXPECT_EQ(problem.kind, ProblemKind::kUnknown) << problem.message;
    EXPECT_TRUE(has(problem.message, "unknown key \"" + wrong_path + "\"")) << problem.message;
    EXPECT_TRUE(has(problem.message, reading.source)) << problem.message;
    EXPECT_TRUE(has(problem.message, "\"" + right_path + "\""))
        << right_path << ": " << problem.message;
    ASSERT_EQ(reading.account.size(), 1U) << wrong_path;
    EXPECT_EQ(reading.account.front().outcome, Outcome::kRefused) << wrong_path;
  }

  Dialect dialect_;
  std::set<std::string> leaves_;
};

TEST(Mutation, AMisspeltKeyIsRefusedWithTheRightOne) {
  for (const Dialect dialect : kAllDialects) {
    Misspelling mutation(dialect);
    for (const std::string& path : paths_in(dialect)) {
      mutation.try_all(path);
    }
    fmt::print("{}: {} keys, {} misspellings refused with the right key, {} are other keys\n",
               file_of(dialect),
               paths_in(dialect).size(),
               mutation.tried,
               mutation.other_keys);
    EXPECT_GT(mutation.tried, paths_in(dialect).size());
  }
}

TEST(Mutation, AMisspeltBlockIsRefusedWithTheRightOne) {
  for (const Dialect dialect : {Dialect::kDeepSpeed, Dialect::kAccelerate}) {
    Misspelling mutation(dialect);
    for (const std::string& block : blocks_of(dialect)) {
      mutation.try_all(block);
    }
    fmt::print("{}: {} misspelt blocks\n", file_of(dialect), mutation.tried);
    EXPECT_GT(mutation.tried, 0U);
  }
}

// A block in which the dialect has no such key.
std::optional<std::string> strange_block(Dialect dialect, const std::string& path) {
  for (const std::string& block : blocks_of(dialect)) {
    const std::string there = below(block, leaf_of(path));
    if (find_in(dialect, there) == nullptr && !is_block(dialect, there)) {
      return block;
    }
  }
  return std::nullopt;
}

void expect_right_place(Dialect dialect, const std::string& wrong, const std::string& right) {
  const Reading reading = reading_of(dialect, wrong, 1);
  ASSERT_EQ(reading.problems.size(), 1U) << wrong;
  const Problem& problem = reading.problems.front();
  EXPECT_EQ(problem.kind, ProblemKind::kMisplaced) << problem.message;
  EXPECT_TRUE(has(problem.message, "\"" + wrong + "\"")) << problem.message;
  EXPECT_TRUE(has(problem.message, reading.source)) << problem.message;
  EXPECT_TRUE(has(problem.message, "\"" + right + "\"")) << right << ": " << problem.message;
  EXPECT_EQ(reading.account.at(0).outcome, Outcome::kRefused) << wrong;
}

// Document paths are split at dots, and so a block in a recipe is one too.
Reading in_block_of_recipe(const std::string& block, const std::string& leaf) {
  return reading_of(Dialect::kRecipe, block, Json{{leaf, 1}});
}

TEST(Mutation, AKeyAtTheWrongLevelIsRefusedWithItsPlace) {
  for (const Dialect dialect : kAllDialects) {
    std::size_t tried = 0;
    for (const std::string& path : paths_in(dialect)) {
      const std::string leaf = leaf_of(path);
      const bool known_at_top = find_in(dialect, leaf) != nullptr || is_block(dialect, leaf);
      if (leaf != path && !known_at_top) {
        expect_right_place(dialect, leaf, path);
        ++tried;
      }
      const std::optional<std::string> block = strange_block(dialect, path);
      ASSERT_TRUE(block.has_value()) << path;
      if (dialect != Dialect::kRecipe) {
        expect_right_place(dialect, below(*block, leaf), path);
      } else {
        const Reading reading = in_block_of_recipe(*block, leaf);
        ASSERT_EQ(reading.problems.size(), 1U) << path;
        EXPECT_TRUE(has(reading.problems[0].message, "\"" + path + "\"")) << path;
      }
      ++tried;
    }
    fmt::print("{}: {} keys at a wrong level\n", file_of(dialect), tried);
  }
}

// What stands in the wrong kind of file is sent to the right word.
TEST(Mutation, AKeyOfAnotherKindOfFileIsRefusedWithItsPlace) {
  const std::set<std::string> leaves = all_leaves(Dialect::kDeepSpeed);
  std::size_t tried = 0;
  for (const Declaration& key : schema()) {
    const bool a_word_there = find_in(Dialect::kDeepSpeed, key.name) != nullptr ||
                              is_block(Dialect::kDeepSpeed, key.name) || leaves.contains(key.name);
    if (key.deepspeed.empty() || a_word_there) {
      continue;
    }
    const Reading reading = reading_of(Dialect::kDeepSpeed, key.name, 1);
    ASSERT_EQ(reading.problems.size(), 1U) << key.name;
    EXPECT_EQ(reading.problems[0].kind, ProblemKind::kMisplaced) << reading.problems[0].message;
    EXPECT_TRUE(has(reading.problems[0].message, "\"" + key.deepspeed.front() + "\""))
        << key.name << ": " << reading.problems[0].message;
    ++tried;
  }
  fmt::print("{} of Transformers' words in a ds_config.json\n", tried);
  EXPECT_GT(tried, 0U);
}

}  // namespace
}  // namespace zeroth::config
