#include "formats/name_pattern.h"

#include "formats/test_files.h"
#include <gtest/gtest.h>

namespace zeroth::formats {
namespace {

using testing::expect_error;

constexpr auto kModule = "model.layers.12.self_attn.q_proj";

TEST(NamePattern, MatchesTheWholeNameAsPythonDoes) {
  EXPECT_TRUE(NamePattern(R"(.*\.(q|v)_proj)", "here").matches(kModule));
  EXPECT_TRUE(NamePattern(R"(model\.layers\.\d{1,2}\..*)", "here").matches(kModule));
  EXPECT_TRUE(NamePattern(R"(model\.layers\.1{,3}2\..*q_proj$)", "here").matches(kModule));
  EXPECT_FALSE(NamePattern("q_proj", "here").matches(kModule));
  EXPECT_FALSE(NamePattern(R"(model\.layers)", "here").matches(kModule));
  EXPECT_FALSE(NamePattern(R"(.*\.v_proj)", "here").matches(kModule));
}

TEST(NamePattern, GivesTheFirstGroupFromTheBeginning) {
  EXPECT_EQ(NamePattern(R"(.*\.layers\.(\d+)\.)", "here").first_group(kModule), "12");
  EXPECT_EQ(NamePattern(R"(.*\.h\.(\d+)\.)", "here").first_group(kModule), "");
  EXPECT_EQ(NamePattern(R"(layers\.(\d+))", "here").first_group(kModule), "");
  EXPECT_EQ(NamePattern("model", "here").first_group(kModule), "");
}

TEST(NamePattern, WhatDoesNotCompileOrEndIsRefused) {
  expect_error([] { NamePattern("q_proj(", "lora_target"); },
               ErrorKind::kConfig,
               {"lora_target", "\"q_proj(\"", "no regular expression"});
  const NamePattern endless(R"((a+)+(a+)+[bc])", "lora_target");
  expect_error([&] { (void)endless.matches(std::string(60, 'a')); },
               ErrorKind::kConfig,
               {"lora_target", "cannot be matched"});
}

}  // namespace
}  // namespace zeroth::formats
