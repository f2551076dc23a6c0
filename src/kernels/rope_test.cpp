#include "kernels/rope.h"

#include <limits>

#include "kernels/versions.h"

namespace zeroth::kernels {
namespace {

class RopeVersions : public BothVersions {};

INSTANTIATE_TEST_SUITE_P(Types,
                         RopeVersions,
                         testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(RopeVersions, AgreeOnHeadsOfAnyLength) {
  for (const std::int64_t half : {1, 3, 17, 32, 50}) {
    for (const std::int64_t rows_of_angles : {1, 2}) {
      const at::Tensor angles = at::randn({rows_of_angles, 6, half});
      const at::Tensor cos = angles.cos();
      const at::Tensor sin = angles.sin();
      expect_versions_agree([&](const Tensors& in) { return Tensors{rope(in[0], cos, sin)}; },
                            {at::randn({2, 6, 3, 2 * half})},
                            GetParam());
    }
  }
}

TEST_P(RopeVersions, AgreeOnPartsOfAProductAndOnTurnedGradients) {
  const at::Tensor angles = at::randn({1, 60, 8});
  const at::Tensor cos = angles.cos();
  const at::Tensor sin = angles.sin();
  expect_versions_agree(
      [&](const Tensors& in) {
        const at::Tensor q = in[0].narrow(2, 48, 32).view({5, 60, 2, 16});
        return Tensors{rope(q, cos, sin).transpose(1, 2), rope(q, cos, sin) * 2};
      },
      {at::randn({5, 60, 96})},
      GetParam());
}

TEST_P(RopeVersions, TheResultLiesAsAttentionReadsIt) {
  const at::Tensor angles = at::randn({1, 6, 8});
  const at::Tensor q = rope(at::randn({2, 6, 3, 16}).to(GetParam()), angles.cos(), angles.sin());
  EXPECT_TRUE(q.transpose(1, 2).is_contiguous());
}

TEST_P(RopeVersions, NoTokensGiveNoNumbers) {
  const at::Tensor angles = at::empty({1, 0, 4});
  EXPECT_EQ(rope(at::empty({2, 0, 3, 8}, GetParam()), angles, angles).sizes(),
            at::IntArrayRef({2, 0, 3, 8}));
}

TEST_P(RopeVersions, WhatIsNotANumberStaysInItsPair) {
  const at::Tensor angles = at::ones({1, 1, 5});
  at::Tensor x = at::ones({1, 1, 1, 10}).to(GetParam());
  x[0][0][0][4] = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor y = rope(x, angles, angles).view({10});
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(y[i].isnan().item<bool>(), i == 4 || i == 9) << i;
  }
}

}  // namespace
}  // namespace zeroth::kernels
