#include "library/parameter_groups.h"

#include <gtest/gtest.h>

namespace zeroth::library {
namespace {

TEST(Patterns, StarsStandForAnyCharacters) {
  EXPECT_TRUE(matches("a.bias", "a.bias"));
  EXPECT_FALSE(matches("a.bias", "a.bias2"));
  EXPECT_TRUE(matches("*", ""));
  EXPECT_TRUE(matches("*.bias", "layers.0.bias"));
  EXPECT_FALSE(matches("*.bias", "bias"));
  EXPECT_TRUE(matches("layers.*.bias", "layers.10.norm.bias"));
  EXPECT_FALSE(matches("layers.*.bias", "layers.bias"));
  EXPECT_TRUE(matches("*norm*", "layers.0.norm1.weight"));
  EXPECT_TRUE(matches("a*b*c", "a-b-b-c"));
  EXPECT_FALSE(matches("a*b*c", "a-c"));
  EXPECT_FALSE(matches("ab*ba", "aba"));  // the ends may not overlap
}

}  // namespace
}  // namespace zeroth::library
