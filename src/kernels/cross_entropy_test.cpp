#include "kernels/cross_entropy.h"

#include <limits>

#include "kernels/versions.h"

namespace zeroth::kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

class CrossEntropyVersions : public BothVersions {};

INSTANTIATE_TEST_SUITE_P(Types,
                         CrossEntropyVersions,
                         testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(CrossEntropyVersions, AgreeOnAnyNumberOfLogits) {
  for (const std::int64_t columns : {1, 3, 17, 100, 576, 1025, 5000}) {
    for (const double cap : {0.0, 3.0}) {
      const at::Tensor targets = at::randint(0, columns, {13}, at::kLong);
      const at::Tensor logits = at::randn({13, columns}) * 4;
      if (columns > 1) {  // a single logit has no loss and no gradient
        expect_versions_agree(
            [&](const Tensors& in) { return Tensors{cross_entropy_sum(in[0], targets, cap)}; },
            {logits},
            GetParam());
      }
    }
  }
}

TEST_P(CrossEntropyVersions, ASingleLogitHasNoLoss) {
  const at::Tensor logits = at::randn({4, 1}).to(GetParam()).requires_grad_(true);
  const at::Tensor loss = cross_entropy_sum(logits, at::zeros({4}, at::kLong));
  EXPECT_EQ(loss.item<float>(), 0);
  EXPECT_TRUE(torch::autograd::grad({loss}, {logits})[0].eq(0).all().item<bool>());
}

TEST_P(CrossEntropyVersions, NoRowsHaveNoLoss) {
  const at::Tensor logits = at::empty({0, 50}, GetParam()).requires_grad_(true);
  const at::Tensor loss = cross_entropy_sum(logits, at::empty({0}, at::kLong));
  EXPECT_EQ(loss.item<float>(), 0);
  EXPECT_EQ(torch::autograd::grad({loss}, {logits})[0].sizes(), logits.sizes());
}

// Larger numbers come after smaller ones and the other way round; whole blocks of minus infinity
// stand before the first number.
TEST_P(CrossEntropyVersions, AgreeOnSortedAndMaskedRows) {
  at::Tensor logits = at::linspace(-60, 60, 5000).repeat({3, 1});
  logits[1] = logits[1].flip(0);
  logits[2].narrow(0, 0, 2100).fill_(-kInfinity);
  const at::Tensor targets = at::full({3}, 2500, at::kLong);
  expect_versions_agree(
      [&](const Tensors& in) { return Tensors{cross_entropy_sum(in[0], targets)}; },
      {logits},
      GetParam());
}

TEST_P(CrossEntropyVersions, WhatIsNotANumberStaysInItsRow) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), kInfinity}) {
    for (const int place : {0, 16, 1500, 1999}) {
      at::Tensor logits = at::randn({2, 2000}).to(GetParam());
      logits[1][place] = bad;
      logits.requires_grad_(true);
      const at::Tensor loss = cross_entropy_sum(logits, at::full({2}, 7, at::kLong));
      EXPECT_TRUE(loss.isnan().item<bool>()) << place;
      const at::Tensor grad = torch::autograd::grad({loss}, {logits})[0];
      EXPECT_TRUE(grad[0].isfinite().all().item<bool>()) << place;
      EXPECT_TRUE(grad[1].isnan().all().item<bool>()) << place;
    }
  }
}

TEST(CrossEntropy, ATargetBesideTheLogitsIsRefused) {
  EXPECT_THROW((void)cross_entropy_sum(at::zeros({1, 4}), at::full({1}, -100, at::kLong)),
               std::exception);
  EXPECT_THROW((void)cross_entropy_sum(at::zeros({1, 4}), at::full({1}, 4, at::kLong)),
               std::exception);
}

}  // namespace
}  // namespace zeroth::kernels
