#include "kernels/linear_cross_entropy.h"

#include <cmath>

#include "arithmetic/loss_chunks.h"
#include "kernels/versions.h"

namespace zeroth::kernels {
namespace {

class LinearCrossEntropyVersions : public BothVersions {};

INSTANTIATE_TEST_SUITE_P(Types,
                         LinearCrossEntropyVersions,
                         testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& test) { return name_of(test.param); });

Operation loss_of(const at::Tensor& targets, double soft_cap = 0) {
  return [targets, soft_cap](const Tensors& in) {
    return Tensors{linear_cross_entropy(in[0], in[1], targets, soft_cap)};
  };
}

TEST_P(LinearCrossEntropyVersions, AgreeOnAnyShape) {
  for (const std::int64_t rows : {1, 17, 100}) {
    for (const std::int64_t columns : {1, 3, 17, 100}) {
      if (rows * columns < 100) {
        continue;  // too few numbers to compare how two versions round
      }
      for (const double cap : {0.0, 2.0}) {
        const at::Tensor targets = at::randint(0, 333, {rows}, at::kLong);
        expect_versions_agree(
            loss_of(targets, cap),
            {at::randn({rows, columns}), at::randn({333, columns}) / std::sqrt(columns)},
            GetParam());
      }
    }
  }
}

TEST_P(LinearCrossEntropyVersions, AgreeOverSeveralChunks) {
  constexpr std::int64_t kVocabulary = 100003;
  const std::int64_t rows =
      2 * arithmetic::rows_at_once(kVocabulary, GetParam() == at::kFloat ? 4 : 2) + 5;
  const at::Tensor targets = at::randint(0, kVocabulary, {rows}, at::kLong);
  expect_versions_agree(
      loss_of(targets), {at::randn({rows, 4}), at::randn({kVocabulary, 4})}, GetParam());
}

TEST_P(LinearCrossEntropyVersions, NoRowsHaveNoLossAndZeroGradients) {
  const at::Tensor hidden = at::empty({0, 8}, GetParam()).requires_grad_(true);
  const at::Tensor weight = at::randn({50, 8}).to(GetParam()).requires_grad_(true);
  const at::Tensor loss = linear_cross_entropy(hidden, weight, at::empty({0}, at::kLong));
  EXPECT_EQ(loss.item<float>(), 0);
  const Tensors grads = torch::autograd::grad({loss}, {hidden, weight});
  EXPECT_EQ(grads[0].sizes(), hidden.sizes());
  EXPECT_TRUE(at::equal(grads[1], at::zeros({50, 8}, GetParam())));
}

TEST_P(LinearCrossEntropyVersions, AFrozenWeightChangesNoOtherNumber) {
  const at::Tensor hidden = at::randn({30, 16}).to(GetParam()).requires_grad_(true);
  const at::Tensor weight = at::randn({50, 16}).to(GetParam());
  const at::Tensor targets = at::randint(0, 50, {30}, at::kLong);
  const at::Tensor trained = weight.clone().requires_grad_(true);
  const at::Tensor loss = linear_cross_entropy(hidden, weight, targets);
  const at::Tensor same = linear_cross_entropy(hidden, trained, targets);
  EXPECT_TRUE(at::equal(loss, same));
  EXPECT_TRUE(at::equal(torch::autograd::grad({loss}, {hidden})[0],
                        torch::autograd::grad({same}, {hidden})[0]));
  const at::NoGradGuard no_grad;
  const at::Tensor evaluated = linear_cross_entropy(hidden, trained, targets);
  EXPECT_FALSE(evaluated.requires_grad());
  EXPECT_TRUE(at::equal(evaluated, loss));
}

// A gradient that fp16 would hold only as 0 before the loss scale multiplies it.
TEST(LinearCrossEntropy, SmallProbabilitiesReachTheGradientInFp16) {
  const at::Tensor hidden = at::ones({1, 1}).to(at::kHalf);
  at::Tensor weight = at::zeros({3, 1}).to(at::kHalf);
  weight[1][0] = -20;  // a probability of 1e-9
  weight.requires_grad_(true);
  const at::Tensor loss = linear_cross_entropy(hidden, weight, at::zeros({1}, at::kLong));
  const at::Tensor scale = at::full({}, 65536.0F);
  const at::Tensor grad = torch::autograd::grad({loss}, {weight}, {scale})[0];
  EXPECT_NEAR(grad[1].item<double>(), 65536 * 0.5 * std::exp(-20.0), 1e-6);
}

TEST(LinearCrossEntropy, ChunksKeepToTheirSize) {
  EXPECT_EQ(arithmetic::rows_at_once(49152, 2), 341);
  EXPECT_EQ(arithmetic::rows_at_once(49152, 4), 170);
  EXPECT_EQ(arithmetic::rows_at_once(std::int64_t{1} << 30, 4), arithmetic::kMinRowsAtOnce);
}

}  // namespace
}  // namespace zeroth::kernels
