#include "kernels/choice.h"

#include <gtest/gtest.h>

#include <ATen/ATen.h>

namespace zeroth::kernels {
namespace {

// The tests of this program are of the fast versions, where they do not say otherwise.
const bool kFastHere = [] {
  set_choice(Choice::kAuto);
  return true;
}();

TEST(KernelChoice, DecidesForTypesThatHaveAFastVersion) {
  ASSERT_TRUE(kFastHere);
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    EXPECT_TRUE(is_fast(at::zeros({2}, type)));
  }
  EXPECT_FALSE(is_fast(at::zeros({2}, at::kDouble)));
  EXPECT_FALSE(is_fast(at::zeros({2}, at::kLong)));
  {
    const ChoiceScope scope(Choice::kReference);
    EXPECT_FALSE(is_fast(at::zeros({2})));
  }
  EXPECT_TRUE(is_fast(at::zeros({2})));
}

}  // namespace
}  // namespace zeroth::kernels
