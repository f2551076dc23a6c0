#include "kernels/gated.h"

#include <cmath>
#include <limits>

#include "kernels/versions.h"

namespace zeroth::kernels {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr GateActivation kActivations[] = {
    GateActivation::kSilu, GateActivation::kGelu, GateActivation::kGeluTanh};

class GatedVersions : public BothVersions {};

INSTANTIATE_TEST_SUITE_P(Types,
                         GatedVersions,
                         testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(GatedVersions, AgreeOnRowsOfAnyLength) {
  for (const GateActivation activation : kActivations) {
    for (const std::int64_t columns : {1, 3, 17, 100, 576}) {
      expect_versions_agree(
          [&](const Tensors& in) { return Tensors{gated(in[0], in[1], activation)}; },
          {at::randn({13, columns}) * 3, at::randn({13, columns})},
          GetParam());
    }
  }
}

TEST_P(GatedVersions, AgreeOnMoreThanOneThreadsShareAndOnViews) {
  expect_versions_agree(
      [&](const Tensors& in) {
        return Tensors{gated(in[0].transpose(0, 1), in[1].transpose(0, 1), GateActivation::kSilu)};
      },
      {at::randn({301, 333}), at::randn({301, 333})},
      GetParam());
}

TEST_P(GatedVersions, NoRowsGiveNoNumbers) {
  const at::Tensor gate = at::empty({0, 17}, GetParam()).requires_grad_(true);
  const at::Tensor y = gated(gate, gate, GateActivation::kSilu);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({0, 17}));
  EXPECT_EQ(torch::autograd::grad({y}, {gate}, {at::empty_like(y)})[0].sizes(), y.sizes());
}

TEST_P(GatedVersions, WhatIsNotANumberStaysAndInfinityPasses) {
  for (const GateActivation activation : kActivations) {
    at::Tensor gate = at::ones({19}).to(GetParam());
    gate[1] = std::numeric_limits<float>::quiet_NaN();
    gate[2] = kInfinity;
    gate[18] = std::numeric_limits<float>::quiet_NaN();
    at::Tensor up = at::ones({19}).to(GetParam());
    up[3] = std::numeric_limits<float>::quiet_NaN();
    up[4] = -kInfinity;
    const at::Tensor y = gated(gate, up, activation);
    EXPECT_TRUE(y[0].isfinite().item<bool>());
    EXPECT_TRUE(y[1].isnan().item<bool>());
    EXPECT_EQ(y[2].item<double>(), kInfinity);
    EXPECT_TRUE(y[3].isnan().item<bool>());
    EXPECT_EQ(y[4].item<double>(), -kInfinity);
    EXPECT_TRUE(y[18].isnan().item<bool>());
  }
}

// Small results too are right to some parts in a million: the far ends of the activations and the
// borders between the ways that the functions are computed.
TEST(Gated, EveryNumberIsNearTheFunctionInFp32) {
  const at::Tensor x = at::linspace(-20, 20, 400001);
  const at::Tensor wide = x.to(at::kDouble);
  const at::Tensor ones = at::ones_like(x);
  const auto worst = [&](GateActivation activation, const at::Tensor& expected) {
    const at::Tensor error = gated(x, ones, activation).to(at::kDouble) - expected;
    // Relative to x where the activation's tail is next to nothing beside it.
    return (error / at::maximum(expected.abs(), wide.abs() * 0.05)).abs().max().item<double>();
  };
  EXPECT_LT(worst(GateActivation::kSilu, wide * wide.sigmoid()), 4e-7);
  EXPECT_LT(worst(GateActivation::kGelu, wide * 0.5 * (1 + (wide * std::sqrt(0.5)).erf())), 2e-6);
  const at::Tensor inner = std::sqrt(2 / M_PI) * (wide + 0.044715 * wide * wide * wide);
  EXPECT_LT(worst(GateActivation::kGeluTanh, wide * 0.5 * (1 + inner.tanh())), 2e-6);
  const at::Tensor silu = gated(x, ones, GateActivation::kSilu).to(at::kDouble);
  EXPECT_LT(
      ((silu / wide / wide.sigmoid()) - 1).abs().masked_select(wide != 0).max().item<double>(),
      4e-7);
}

}  // namespace
}  // namespace zeroth::kernels
