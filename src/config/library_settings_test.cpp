#include "config/library_settings.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace zeroth::config {
namespace {

constexpr auto kStory = R"({
  "train_batch_size": 32,
  "gradient_accumulation_steps": 1
})";

Placement ranks(std::int64_t count) {
  return count == 1
             ? Placement{}
             : Placement{.kind = LaunchKind::kHost, .world_size = count, .source = "WORLD_SIZE"};
}

Resolution resolve_values(std::vector<CodeValue> values, std::vector<std::string> texts = {}) {
  return resolve_library({.texts = std::move(texts), .values = std::move(values)}, ranks(4));
}

std::string problems_of(const Resolution& resolution) {
  std::string text;
  for (const Problem& problem : resolution.problems.all()) {
    text += problem.message + "\n";
  }
  return text;
}

const SettingInForce* setting(const Resolution& resolution, const std::string& key) {
  const auto& all = resolution.config.settings;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& line) { return line.key == key; });
  return found == all.end() ? nullptr : &*found;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(LibrarySettings, TheFileAloneGivesEightRowsARank) {
  const Resolution resolution = resolve_values({}, {kStory});
  EXPECT_EQ(problems_of(resolution), "");
  EXPECT_EQ(resolution.config.batch.micro_batch_rows, 8);
  EXPECT_EQ(setting(resolution, "train_batch_size")->source, "JSON text:2");
  EXPECT_EQ(resolution.config.schedule.kind, ScheduleKind::kConstant);
}

TEST(LibrarySettings, ValuesInCodeAreStrongerThanFiles) {
  const Resolution resolution = resolve_values(
      {{"train_micro_batch_size_per_gpu", 1}, {"gradient_accumulation_steps", 8}}, {kStory});
  EXPECT_EQ(problems_of(resolution), "");
  EXPECT_EQ(resolution.config.batch.accumulation, 8);
  const SettingInForce* accumulation = setting(resolution, "gradient_accumulation_steps");
  EXPECT_EQ(accumulation->source, "code");
  ASSERT_EQ(accumulation->overrides.size(), 1U);
  EXPECT_EQ(accumulation->overrides[0].source, "JSON text:3");
}

TEST(LibrarySettings, WhatIsEquallyStrongMustAgree) {
  EXPECT_TRUE(
      contains(problems_of(resolve_values({{"zero_stage", 2}, {"zero_optimization.stage", 3}})),
               "keep one"));
  EXPECT_EQ(problems_of(resolve_values({{"zero_stage", 2}, {"zero_optimization.stage", 2}})), "");
  const std::string differ =
      problems_of(resolve_values({}, {kStory, R"({"train_batch_size": 16})"}));
  EXPECT_TRUE(contains(differ, "two files disagree")) << differ;
  EXPECT_TRUE(contains(differ, "JSON text 2:1")) << differ;
}

TEST(LibrarySettings, UnknownKeysAndWrongTypesAreNamed) {
  const std::string unknown = problems_of(resolve_values({{"zero_optimization.stag", 2}}));
  EXPECT_TRUE(contains(unknown, "zero_optimization.stage")) << unknown;
  EXPECT_TRUE(contains(unknown, "code")) << unknown;
  const std::string type = problems_of(resolve_values({{"zero_optimization.stage", "2"}}));
  EXPECT_TRUE(contains(type, "takes an integer, not")) << type;
  const std::string range = problems_of(resolve_values({{"zero_optimization.stage", 4}}));
  EXPECT_TRUE(contains(range, "must be at least 0 and at most 3")) << range;
}

TEST(LibrarySettings, KeysOfTheCommandAreRefusedInCodeAndIdleInFiles) {
  const std::string problems =
      problems_of(resolve_values({{"dataset", "rows.json"}, {"start_timeout", 5.0}}));
  EXPECT_TRUE(contains(problems, "dataset is a setting of zeroth train")) << problems;
  EXPECT_TRUE(contains(problems, "RuntimeOptions")) << problems;
  const Resolution resolution = resolve_values({}, {R"({"steps_per_print": 10})"});
  EXPECT_EQ(problems_of(resolution), "");
  ASSERT_EQ(resolution.config.without_effect.size(), 1U);
}

TEST(LibrarySettings, EverySettingInForceIsTheEngines) {
  const Resolution resolution = resolve_values({});
  EXPECT_EQ(setting(resolution, "template"), nullptr);
  EXPECT_EQ(setting(resolution, "output_dir"), nullptr);
  EXPECT_NE(setting(resolution, "learning_rate"), nullptr);
}

TEST(LibrarySettings, AScheduleThatEndsNeedsTheNumberOfUpdates) {
  const CodeValue linear{"lr_scheduler_type", "linear"};
  EXPECT_TRUE(contains(problems_of(resolve_values({linear})), "set max_steps"));
  EXPECT_EQ(problems_of(resolve_values({linear, {"max_steps", 100}})), "");
  EXPECT_TRUE(contains(problems_of(resolve_values(
                           {{"lr_scheduler_type", "constant_with_warmup"}, {"warmup_ratio", 0.1}})),
                       "set max_steps"));
}

TEST(LibrarySettings, RanksThatNobodyHasStartedAreRefused) {
  const Resolution alone = resolve_library({.values = {{"ranks", 2}}}, ranks(1));
  EXPECT_TRUE(contains(problems_of(alone), "zeroth launch --ranks 2")) << problems_of(alone);
  EXPECT_TRUE(contains(problems_of(resolve_values({{"ranks", 2}})), "WORLD_SIZE=4"));
  EXPECT_EQ(problems_of(resolve_values({{"ranks", 4}})), "");
}

TEST(LibrarySettings, NoWrittenValueIsLeftOver) {
  const Resolution resolution = resolve_values(
      {{"lr", 1e-3}, {"optimizer.params.betas", Json::array({0.9, 0.95})}, {"dataset", "x"}},
      {kStory});
  EXPECT_EQ(resolution.account.size(), 5U);
  for (const Written& written : resolution.account) {
    EXPECT_TRUE(written.outcome != Outcome::kRefused || written.path == "dataset") << written.path;
  }
  EXPECT_EQ(resolution.config.optimizer.beta2, 0.95);
}

}  // namespace
}  // namespace zeroth::config
