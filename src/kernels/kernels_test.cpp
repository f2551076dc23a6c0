#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/gated.h"
#include "kernels/linear.h"
#include "kernels/parallel.h"
#include "kernels/product.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/soft_cap.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

// Every operation and its gradients against plain ATen operations in fp64.
namespace zeroth::kernels {
namespace {

using Operation = std::function<at::Tensor(const std::vector<at::Tensor>&)>;

double relative_error(const at::Tensor& value, const at::Tensor& reference) {
  const at::Tensor wide = value.to(at::kDouble);
  return ((wide - reference).norm() / (reference.norm() + 1e-30)).item<double>();
}

// Runs both on the same inputs, the reference in fp64, and compares results and all input
// gradients.
void expect_same(const Operation& operation,
                 const Operation& reference,
                 const std::vector<at::Tensor>& inputs,
                 double tolerance) {
  std::vector<at::Tensor> leaves;
  std::vector<at::Tensor> wide_leaves;
  for (const at::Tensor& input : inputs) {
    leaves.push_back(input.detach().clone().requires_grad_(true));
    wide_leaves.push_back(input.detach().to(at::kDouble).requires_grad_(true));
  }
  const at::Tensor result = operation(leaves);
  const at::Tensor expected = reference(wide_leaves);
  EXPECT_LT(relative_error(result.detach(), expected.detach()), tolerance);
  at::manual_seed(5);
  const at::Tensor grad = at::randn(result.sizes());
  const auto grads = torch::autograd::grad({result}, leaves, {grad.to(result.scalar_type())});
  const auto expected_grads = torch::autograd::grad(
      {expected}, wide_leaves, {grad.to(result.scalar_type()).to(at::kDouble)});
  for (std::size_t i = 0; i < grads.size(); ++i) {
    EXPECT_LT(relative_error(grads[i], expected_grads[i]), tolerance) << "gradient of input " << i;
  }
}

class Kernels : public testing::TestWithParam<at::ScalarType> {
 protected:
  void SetUp() override { at::manual_seed(3); }

  [[nodiscard]] double tolerance() const {
    return GetParam() == at::kFloat ? 2e-6 : GetParam() == at::kHalf ? 1e-3 : 2e-2;
  }

  [[nodiscard]] static at::Tensor random(at::IntArrayRef shape) {
    return at::randn(shape).to(GetParam());
  }
};

INSTANTIATE_TEST_SUITE_P(
    Types, Kernels, testing::Values(at::kFloat, at::kBFloat16, at::kHalf), [](const auto& test) {
      return test.param == at::kFloat ? "fp32" : test.param == at::kHalf ? "fp16" : "bf16";
    });

TEST_P(Kernels, ProductTakesTransposedViews) {
  const at::Tensor a = random({3, 17, 33});
  const at::Tensor b = random({3, 33, 9});
  const at::Tensor expected = at::matmul(a.to(at::kDouble), b.to(at::kDouble));
  const double bound = GetParam() == at::kFloat ? 1e-6 : 5e-3;
  EXPECT_LT(relative_error(product(a, b), expected), bound);
  EXPECT_LT(relative_error(product(b.transpose(1, 2), a.transpose(1, 2)), expected.transpose(1, 2)),
            bound);
  EXPECT_LT(relative_error(product(a.narrow(1, 2, 5), b), expected.narrow(1, 2, 5)), bound);
  EXPECT_LT(relative_error(product(a[0], b[0], at::kFloat), expected[0]), 1e-6);
}

// Rows or columns go to threads in parts: sizes that leave the last thread less, or nothing.
TEST_P(Kernels, ProductIsTheSameInPartsOnSeveralThreads) {
  for (const int threads : {2, 3, 5}) {
    for (const auto& [rows, columns] :
         {std::pair(1300, 70), std::pair(70, 1300), std::pair(641, 641)}) {
      const at::Tensor a = random({rows, 133});
      const at::Tensor b = random({columns, 133}).t();
      const at::Tensor before = random({rows, columns});
      const at::Tensor expected = at::matmul(a.to(at::kDouble), b.to(at::kDouble));
      at::Tensor sum = before.to(at::kFloat, /*non_blocking=*/false, /*copy=*/true);
      const ThreadsInUse in_use(threads);
      product_into(sum, a, b, Accumulate::kAdd);
      EXPECT_LT(relative_error(sum, expected + before.to(at::kDouble)), 1e-6)
          << rows << " x " << columns << " on " << threads;
      EXPECT_LT(relative_error(product(b.t(), a.t()), expected.t()), tolerance());
    }
  }
}

TEST_P(Kernels, ProductOfOneRowAndOfNone) {
  const at::Tensor a = random({1, 8});
  const at::Tensor b = random({8, 5});
  EXPECT_LT(relative_error(product(a, b), at::matmul(a.to(at::kDouble), b.to(at::kDouble))), 1e-2);
  EXPECT_EQ(product(random({0, 8}), b).sizes(), at::IntArrayRef({0, 5}));
}

TEST_P(Kernels, Linear) {
  const Operation reference = [](const auto& in) { return at::linear(in[0], in[1], in[2]); };
  expect_same([](const auto& in) { return kernels::linear(in[0], in[1], in[2]); },
              reference,
              {random({2, 7, 24}), random({13, 24}), random({13})},
              tolerance());
}

TEST(Linear, AFrozenWeightGetsNoGradient) {
  const at::Tensor x = at::randn({4, 8}).requires_grad_(true);
  const at::Tensor weight = at::randn({6, 8});
  const at::Tensor y = kernels::linear(x, weight);
  const auto grads = torch::autograd::grad({y.sum()}, {x});
  EXPECT_TRUE(at::allclose(grads[0], weight.sum(0).expand({4, 8}), 1e-5, 1e-5));
}

TEST_P(Kernels, RmsNorm) {
  const Operation reference = [](const auto& in) {
    return in[0] * at::rsqrt(in[0].square().mean(-1, true) + 1e-5) * in[1];
  };
  expect_same([](const auto& in) { return rms_norm(in[0], in[1], 1e-5); },
              reference,
              {random({3, 5, 40}), random({40})},
              tolerance());
}

TEST_P(Kernels, RmsNormByOnePlusWeight) {
  const Operation reference = [](const auto& in) {
    return in[0] * at::rsqrt(in[0].square().mean(-1, true) + 1e-5) * (1 + in[1]);
  };
  expect_same([](const auto& in) { return rms_norm(in[0], in[1], 1e-5, NormWeight::kPlusOne); },
              reference,
              {random({3, 5, 40}), random({40})},
              tolerance());
}

// 1 + w in bf16 would lose w below 1/256.
TEST(RmsNorm, OnePlusWeightIsFormedInFp32) {
  const at::Tensor x = at::ones({1, 8}).to(at::kBFloat16) * 256;
  const at::Tensor weight = at::full({8}, 0.003, at::kBFloat16);
  const at::Tensor y = rms_norm(x, weight, 0, NormWeight::kPlusOne);
  EXPECT_EQ(y[0][0].item<float>(), 1.0F);
  const at::Tensor more = at::full({8}, 0.0041, at::kBFloat16);
  EXPECT_EQ(rms_norm(x, more, 0, NormWeight::kPlusOne)[0][0].item<float>(), 1.0078125F);
}

TEST_P(Kernels, Rope) {
  const at::Tensor angles = at::randn({1, 6, 4});
  const at::Tensor cos = angles.cos();
  const at::Tensor sin = angles.sin();
  const Operation reference = [&](const auto& in) {
    const at::Tensor first = in[0].narrow(3, 0, 4);
    const at::Tensor second = in[0].narrow(3, 4, 4);
    const at::Tensor full_cos = at::cat({cos, cos}, -1).unsqueeze(2).to(at::kDouble);
    const at::Tensor full_sin = at::cat({sin, sin}, -1).unsqueeze(2).to(at::kDouble);
    return in[0] * full_cos + at::cat({-second, first}, -1) * full_sin;
  };
  expect_same([&](const auto& in) { return rope(in[0], cos, sin); },
              reference,
              {random({2, 6, 3, 8})},
              tolerance());
}

TEST_P(Kernels, CrossEntropySum) {
  const at::Tensor targets = at::randint(0, 50, {9}, at::kLong);
  const Operation reference = [&](const auto& in) {
    return -in[0].log_softmax(-1).gather(1, targets.unsqueeze(1)).sum();
  };
  expect_same([&](const auto& in) { return cross_entropy_sum(in[0], targets); },
              reference,
              {random({9, 50})},
              tolerance());
}

TEST_P(Kernels, Swiglu) {
  const Operation reference = [](const auto& in) { return in[0] * in[0].sigmoid() * in[1]; };
  expect_same([](const auto& in) { return gated(in[0], in[1], GateActivation::kSilu); },
              reference,
              {random({5, 31}), random({5, 31})},
              tolerance());
}

TEST_P(Kernels, GatedByGeluExactAndByTanh) {
  const std::vector<at::Tensor> inputs{random({5, 31}), random({5, 31})};
  expect_same(
      [](const auto& in) { return gated(in[0], in[1], GateActivation::kGelu); },
      [](const auto& in) { return in[0] * 0.5 * (1 + at::erf(in[0] / std::sqrt(2.0))) * in[1]; },
      inputs,
      tolerance());
  expect_same([](const auto& in) { return gated(in[0], in[1], GateActivation::kGeluTanh); },
              [](const auto& in) {
                const at::Tensor inner =
                    std::sqrt(2 / M_PI) * (in[0] + 0.044715 * in[0] * in[0] * in[0]);
                return in[0] * 0.5 * (1 + inner.tanh()) * in[1];
              },
              inputs,
              tolerance());
}

TEST_P(Kernels, SoftCap) {
  expect_same([](const auto& in) { return soft_cap(in[0], 1.5); },
              [](const auto& in) { return 1.5 * (in[0] / 1.5).tanh(); },
              {random({5, 31})},
              GetParam() == at::kFloat ? tolerance() : 2 * tolerance());
}

TEST_P(Kernels, EmbeddingOfTokensThatComeAgain) {
  const at::Tensor ids = at::randint(0, 11, {3, 40}, at::kLong);
  expect_same([&](const auto& in) { return kernels::embedding(in[0], ids); },
              [&](const auto& in) { return at::embedding(in[0], ids); },
              {random({17, 6})},
              tolerance());
}

TEST_P(Kernels, DropoutScalesWhatItKeepsInBothDirections) {
  const DropoutKey key{.seed = 4, .rows = {0, 1}};
  const at::Tensor factors = dropout(at::ones({2, 5, 16}), 0.5, key);
  expect_same([&](const auto& in) { return dropout(in[0], 0.5, key); },
              [&](const auto& in) { return in[0] * factors.to(at::kDouble); },
              {random({2, 5, 16})},
              tolerance());
}

TEST(Embedding, AddsInTheOrderOfPlacesOnAnyNumberOfThreads) {
  const at::Tensor ids = at::randint(0, 40, {400}, at::kLong);
  const at::Tensor weight = at::randn({50, 33}).requires_grad_(true);
  const at::Tensor grad = at::randn({400, 33});
  const auto backward = [&] {
    return torch::autograd::grad({kernels::embedding(weight, ids)}, {weight}, {grad}).front();
  };
  at::Tensor expected = at::zeros({50, 33});
  for (std::int64_t place = 0; place < ids.numel(); ++place) {
    expected[ids[place].item<std::int64_t>()] += grad[place];
  }
  const int threads = at::get_num_threads();
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    EXPECT_TRUE(at::equal(backward(), expected)) << count << " threads";
  }
  at::set_num_threads(threads);
}

TEST(Dropout, DependsOnTheRowAndNotOnItsPlaceInTheBatch) {
  const at::Tensor x = at::ones({3, 4, 5});
  const DropoutKey key{.seed = 1, .module = 2, .update = 3, .rows = {7, 8, 9}};
  const at::Tensor all = dropout(x, 0.5, key);
  const DropoutKey alone{.seed = 1, .module = 2, .update = 3, .rows = {9}};
  EXPECT_TRUE(at::equal(all[2], dropout(x.narrow(0, 0, 1), 0.5, alone)[0]));
  // Padding on the right leaves the mask of the real tokens as it was.
  EXPECT_TRUE(at::equal(all[2].narrow(0, 0, 2), dropout(at::ones({1, 2, 5}), 0.5, alone)[0]));
  EXPECT_FALSE(at::equal(all[0], all[1]));
  DropoutKey later = alone;
  later.update = 4;
  EXPECT_FALSE(
      at::equal(dropout(x.narrow(0, 0, 1), 0.5, later), dropout(x.narrow(0, 0, 1), 0.5, alone)));
}

TEST(Dropout, DropsTheStatedShareAndKeepsTheMean) {
  const at::Tensor y = dropout(at::ones({1, 100, 100}), 0.25, {.seed = 1, .rows = {0}});
  EXPECT_NEAR((y == 0).to(at::kFloat).mean().item<double>(), 0.25, 0.02);
  EXPECT_NEAR(y.mean().item<double>(), 1.0, 0.02);
}

}  // namespace
}  // namespace zeroth::kernels
