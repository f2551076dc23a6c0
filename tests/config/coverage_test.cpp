// The schema against lists of keys that were written down from the documentation of others.
#include <map>

#include "config/support.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zeroth::config {
namespace {

void expect_all_known(Dialect dialect, const std::string& list, std::size_t at_least) {
  const std::vector<std::string> names = lines_of(kSourceDir / "tests" / "config" / list);
  EXPECT_GE(names.size(), at_least) << list;
  std::size_t known = 0;
  for (const std::string& name : names) {
    const bool found = find_in(dialect, name) != nullptr;
    EXPECT_TRUE(found) << list << ": " << name << " is no key of " << file_of(dialect);
    known += found ? 1 : 0;
  }
  fmt::print("{}: {} of {} known\n", list, known, names.size());
}

TEST(Coverage, EveryKeyOfDeepSpeedIsKnown) {
  expect_all_known(Dialect::kDeepSpeed, "deepspeed_keys.txt", 497);
}

TEST(Coverage, EveryFieldOfAnAccelerateFileIsKnown) {
  expect_all_known(Dialect::kAccelerate, "accelerate_keys.txt", 108);
}

TEST(Coverage, EveryOptionOfARecipeIsKnown) {
  expect_all_known(Dialect::kRecipe, "recipe_keys.txt", 322);
}

bool is_plain_name(const std::string& name) {
  const bool plain = !name.empty() && name.find_first_not_of(
                                          "abcdefghijklmnopqrstuvwxyz"
                                          "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                          "0123456789_.") == std::string::npos;
  return plain && name.front() != '.' && name.back() != '.' && !has(name, "..");
}

// A star or a bracket would take in names that nobody has looked at.
TEST(Coverage, NoDeclarationIsAPattern) {
  for (const Declaration& key : schema()) {
    for (const std::string& name : all_names(key)) {
      EXPECT_TRUE(is_plain_name(name)) << name;
    }
  }
}

TEST(Coverage, WhatIsNotDeclaredIsNotFound) {
  for (const Dialect dialect : {Dialect::kDeepSpeed, Dialect::kAccelerate, Dialect::kRecipe}) {
    for (const std::string& path : paths_in(dialect)) {
      EXPECT_NE(find_in(dialect, path), nullptr) << path;
      EXPECT_EQ(find_in(dialect, path + ".x"), nullptr) << path;
      EXPECT_EQ(find_in(dialect, "x" + path + "x"), nullptr) << path;
    }
    EXPECT_EQ(find_in(dialect, ""), nullptr);
    EXPECT_EQ(find_in(dialect, "*"), nullptr);
  }
}

TEST(Coverage, EveryReasonForNoEffectIsTheKeysOwn) {
  std::map<std::string, std::string> first_with;
  for (const Declaration& key : schema()) {
    if (key.status == Status::kHarmless) {
      const auto [there, added] = first_with.emplace(key.reason, key.name);
      EXPECT_TRUE(added) << key.name << " and " << there->second << ": " << key.reason;
    }
  }
  fmt::print("{} keys without effect, each with its own reason\n", first_with.size());
}

TEST(Coverage, EveryDeclarationSaysWhatItIsForOrWhyItDoesNotAct) {
  std::map<Status, std::size_t> counts;
  for (const Declaration& key : schema()) {
    ++counts[key.status];
    EXPECT_FALSE(key.help.empty() && key.reason.empty()) << key.name;
    EXPECT_TRUE(key.status == Status::kInForce || !key.reason.empty()) << key.name;
  }
  fmt::print("{} declarations: {} act, {} planned, {} without effect, {} refused\n",
             schema().size(),
             counts[Status::kInForce],
             counts[Status::kPlanned],
             counts[Status::kHarmless],
             counts[Status::kRefused]);
}

}  // namespace
}  // namespace zeroth::config
