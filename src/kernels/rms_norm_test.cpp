#include "kernels/rms_norm.h"

#include <limits>

#include "kernels/versions.h"

#include <ATen/Parallel.h>

namespace zeroth::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// With an epsilon that counts where a row is one number: its norm is constant but for that.
double epsilon_for(std::int64_t columns) {
  return columns == 1 ? 0.5 : 1e-5;
}

class RmsNormVersions : public BothVersions {};

INSTANTIATE_TEST_SUITE_P(Types,
                         RmsNormVersions,
                         testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(RmsNormVersions, AgreeOnRowsOfAnyLength) {
  for (const std::int64_t columns : {1, 3, 17, 100, 576}) {
    for (const NormWeight form : {NormWeight::kPlain, NormWeight::kPlusOne}) {
      expect_versions_agree(
          [&](const Tensors& in) {
            return Tensors{rms_norm(in[0], in[1], epsilon_for(columns), form)};
          },
          {at::randn({5, 7, columns}), at::randn({columns})},
          GetParam());
    }
  }
}

TEST_P(RmsNormVersions, AgreeOnNormsOfSums) {
  for (const std::int64_t columns : {1, 3, 17, 100, 576}) {
    for (const NormWeight form : {NormWeight::kPlain, NormWeight::kPlusOne}) {
      expect_versions_agree(
          [&](const Tensors& in) {
            const SumAndNorm both = add_rms_norm(in[0], in[1], in[2], epsilon_for(columns), form);
            return Tensors{both.sum, both.normed};
          },
          {at::randn({5, 7, columns}), at::randn({5, 7, columns}), at::randn({columns})},
          GetParam());
    }
  }
}

TEST_P(RmsNormVersions, AgreeOnManyRowsAndOnOne) {
  for (const std::int64_t rows : {1, 2, 1027}) {
    expect_versions_agree([](const Tensors& in) { return Tensors{rms_norm(in[0], in[1], 1e-5)}; },
                          {at::randn({rows, 33}), at::randn({33})},
                          GetParam());
  }
}

TEST_P(RmsNormVersions, ARowThatDoesNotLieInOnePieceIsReadRight) {
  expect_versions_agree(
      [](const Tensors& in) { return Tensors{rms_norm(in[0].transpose(0, 1), in[1], 1e-5)}; },
      {at::randn({19, 6}), at::randn({19})},
      GetParam());
}

TEST_P(RmsNormVersions, NoRowsGiveNoNumbersAndAZeroGradient) {
  const at::Tensor x = at::empty({0, 17}, GetParam()).requires_grad_(true);
  const at::Tensor weight = at::ones({17}, GetParam()).requires_grad_(true);
  const at::Tensor y = rms_norm(x, weight, 1e-5);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({0, 17}));
  const Tensors grads = torch::autograd::grad({y}, {x, weight}, {at::empty_like(y)});
  EXPECT_EQ(grads[0].sizes(), at::IntArrayRef({0, 17}));
  EXPECT_TRUE(at::equal(grads[1], at::zeros({17}, GetParam())));
}

TEST_P(RmsNormVersions, WhatIsNotANumberStaysInItsRow) {
  at::Tensor x = at::ones({3, 19}).to(GetParam());
  x[1][18] = std::numeric_limits<float>::quiet_NaN();
  x[2][0] = kInfinity;
  const at::Tensor weight = at::ones({19}).to(GetParam());
  const SumAndNorm both = add_rms_norm(x, at::zeros_like(x), weight, 0);
  EXPECT_TRUE(both.normed[0].eq(1).all().item<bool>());
  EXPECT_TRUE(both.normed[1].isnan().all().item<bool>());
  EXPECT_TRUE(both.normed[2][0].isnan().item<bool>());  // infinity times 0
  EXPECT_TRUE(both.sum[1][18].isnan().item<bool>());
  EXPECT_TRUE(both.sum[2][0].isinf().item<bool>());
  EXPECT_TRUE(
      at::equal(rms_norm(x[0], weight * kInfinity, 0), at::full({19}, kInfinity, GetParam())));
}

TEST(RmsNorm, TheWeightsGradientHasTheSameBitsOnAnyNumberOfThreads) {
  const at::Tensor x = at::randn({1000, 50});
  const at::Tensor weight = at::randn({50}).requires_grad_(true);
  const at::Tensor grad = at::randn({1000, 50});
  const auto backward = [&] {
    return torch::autograd::grad({rms_norm(x, weight, 1e-5)}, {weight}, {grad}).front();
  };
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::Tensor expected = backward();
  for (const int count : {2, 3}) {
    at::set_num_threads(count);
    EXPECT_TRUE(at::equal(backward(), expected)) << count << " threads";
  }
  at::set_num_threads(threads);
}

TEST(RmsNorm, OfASumGivesGradientsOfWhicheverResultIsUsed) {
  const at::Tensor x = at::randn({4, 19}).requires_grad_(true);
  const at::Tensor added = at::randn({4, 19}).requires_grad_(true);
  const at::Tensor weight = at::randn({19});
  const SumAndNorm both = add_rms_norm(x, added, weight, 1e-5);
  const at::Tensor grad = at::randn({4, 19});
  const Tensors of_sum = torch::autograd::grad({both.sum}, {x, added}, {grad}, true);
  EXPECT_TRUE(at::equal(of_sum[0], grad));
  EXPECT_TRUE(at::equal(of_sum[1], grad));
  const Tensors of_norm = torch::autograd::grad({both.normed}, {x}, {grad});
  const at::Tensor sum = (x + added).detach().requires_grad_(true);
  const Tensors expected = torch::autograd::grad({rms_norm(sum, weight, 1e-5)}, {sum}, {grad});
  EXPECT_TRUE(at::equal(of_norm[0], expected[0]));
}

}  // namespace
}  // namespace zeroth::kernels
