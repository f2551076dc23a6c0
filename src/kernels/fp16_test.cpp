#include <cmath>

#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/gated.h"
#include "kernels/linear.h"
#include "kernels/product.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

// fp16 is storage and rounding at the borders of operations: nothing between them overflows, and
// what is too large at a border becomes infinite, as on any other device. How near fp16 comes to
// fp64 stands in kernels_test.
namespace zeroth::kernels {
namespace {

at::Tensor half(double value, at::IntArrayRef shape) {
  return at::full(shape, value).to(at::kHalf);
}

at::Tensor leaf(const at::Tensor& value) {
  return value.clone().requires_grad_(true);
}

at::Tensor gradient(const at::Tensor& output, const at::Tensor& input, const at::Tensor& grad) {
  return torch::autograd::grad({output}, {input}, {grad}).front();
}

bool all_infinite(const at::Tensor& value) {
  return value.scalar_type() == at::kHalf && value.isinf().all().item<bool>();
}

bool all_finite(const at::Tensor& value) {
  return value.scalar_type() == at::kHalf && value.isfinite().all().item<bool>();
}

TEST(Fp16, AProductOverflowsAtItsEndAndNotOnTheWay) {
  EXPECT_TRUE(all_infinite(product(half(200, {2, 4}), half(200, {4, 3}))));
  // 200 * 200 * 4 on the way, 0 at the end.
  const at::Tensor a = at::cat({half(200, {2, 4}), half(-200, {2, 4})}, 1);
  EXPECT_TRUE(all_finite(product(a, half(200, {8, 3}))));
  EXPECT_EQ(product(half(200, {2, 4}), half(200, {4, 3}), at::kFloat)[0][0].item<float>(), 160000);
}

TEST(Fp16, TheLargestNumberStaysAndTheNextIsInfinite) {
  EXPECT_EQ(product(half(65504, {1, 1}), half(1, {1, 1})).item<float>(), 65504);
  EXPECT_TRUE(all_infinite(product(half(32768, {1, 2}), half(1, {2, 1}))));
  EXPECT_TRUE(all_infinite(product(half(-32768, {1, 2}), half(1, {2, 1}))));
}

TEST(Fp16, LinearOverflowsForwardAndBackward) {
  const at::Tensor x = leaf(half(1, {3, 8}));
  const at::Tensor weight = leaf(half(300, {5, 8}));
  const at::Tensor y = kernels::linear(x, weight);
  EXPECT_TRUE(all_finite(y.detach()));
  EXPECT_TRUE(all_infinite(gradient(y, x, half(100, {3, 5}))));
  EXPECT_TRUE(all_infinite(
      gradient(kernels::linear(half(300, {3, 8}), weight), weight, half(100, {3, 5}))));
  EXPECT_TRUE(all_infinite(kernels::linear(half(100, {3, 8}), weight.detach())));
}

TEST(Fp16, ABiasGradientIsSummedInFp32) {
  const at::Tensor bias = leaf(half(0, {2}));
  const at::Tensor y = kernels::linear(half(0, {4096, 4}), half(0, {2, 4}), bias);
  at::Tensor grad = half(60000, {4096, 2});
  grad.narrow(0, 2048, 2048).neg_();
  EXPECT_TRUE(all_finite(gradient(y, bias, grad)));
  EXPECT_TRUE(all_infinite(gradient(
      kernels::linear(half(0, {64, 4}), half(0, {2, 4}), bias), bias, half(2000, {64, 2}))));
}

TEST(Fp16, RmsNormSquaresNumbersThatFp16Cannot) {
  const at::Tensor y = rms_norm(half(30000, {2, 64}), half(2, {64}), 1e-5);
  EXPECT_TRUE(at::equal(y, half(2, {2, 64})));
  at::Tensor one_of_64 = half(0, {2, 64});
  one_of_64.narrow(1, 0, 1).fill_(1);  // normed to 8
  EXPECT_TRUE(all_infinite(rms_norm(one_of_64, half(10000, {64}), 0).narrow(1, 0, 1)));
  const at::Tensor weight = leaf(half(1, {64}));
  EXPECT_TRUE(
      all_infinite(gradient(rms_norm(half(1, {64, 64}), weight, 0), weight, half(2000, {64, 64}))));
}

TEST(Fp16, RopeOverflowsForwardAndBackward) {
  const at::Tensor x = leaf(half(60000, {1, 1, 1, 2}));
  const double cos_45 = std::sqrt(0.5);
  const at::Tensor cos = at::full({1, 1, 1}, cos_45);
  const at::Tensor y = rope(x, cos, cos);  // (0, 84853)
  EXPECT_EQ(y[0][0][0][0].item<float>(), 0);
  EXPECT_TRUE(all_infinite(y.detach().narrow(3, 1, 1)));
  EXPECT_TRUE(all_infinite(gradient(y, x, half(60000, {1, 1, 1, 2})).narrow(3, 0, 1)));
}

TEST(Fp16, AttentionScoresMayExceedFp16) {
  // 300 * 300 * 8 as a score: fp32 between the two products.
  const at::Tensor q = leaf(half(300, {1, 2, 4, 8}));
  const at::Tensor k = half(300, {1, 1, 4, 8});
  const at::Tensor v = half(3, {1, 1, 4, 8});
  const at::Tensor y = attention(q, k, v, causal_first_keys(4, 4), 1.0);
  EXPECT_TRUE(at::equal(y.detach(), half(3, {1, 2, 4, 8})));
  EXPECT_TRUE(all_finite(gradient(y, q, half(1, {1, 2, 4, 8}))));
}

TEST(Fp16, AttentionOverflowsBackward) {
  const at::Tensor v = leaf(half(1, {1, 1, 1, 8}));
  const at::Tensor y =
      attention(half(1, {1, 4, 1, 8}), half(1, {1, 1, 1, 8}), v, causal_first_keys(1, 1), 1.0);
  EXPECT_TRUE(all_infinite(gradient(y, v, half(30000, {1, 4, 1, 8}))));  // four heads share v
}

TEST(Fp16, SwigluOverflowsForwardAndBackward) {
  const at::Tensor gate = leaf(half(300, {4}));
  const at::Tensor up = leaf(half(300, {4}));
  const at::Tensor y = gated(gate, up, GateActivation::kSilu);
  EXPECT_TRUE(all_infinite(y.detach()));
  EXPECT_TRUE(all_infinite(gradient(gated(gate, up, GateActivation::kSilu), up, half(300, {4}))));
  EXPECT_TRUE(all_infinite(gradient(gated(gate, up, GateActivation::kSilu), gate, half(300, {4}))));
  EXPECT_TRUE(all_finite(gradient(gated(gate, up, GateActivation::kSilu), gate, half(100, {4}))));
}

TEST(Fp16, CrossEntropyIsFp32AndItsGradientOverflows) {
  const at::Tensor logits = leaf(half(0, {2, 4}));
  const at::Tensor targets = at::zeros({2}, at::kLong);
  const at::Tensor loss = cross_entropy_sum(logits, targets);
  EXPECT_EQ(loss.scalar_type(), at::kFloat);
  const at::Tensor grad = gradient(loss, logits, at::full({}, 131072.0F));
  EXPECT_TRUE(all_infinite(grad.narrow(1, 0, 1)));
  EXPECT_EQ(grad[0][1].item<float>(), 32768);
}

TEST(Fp16, AnEmbeddingGradientIsSummedInFp32) {
  const at::Tensor weight = leaf(half(0, {3, 2}));
  const at::Tensor ids = at::ones({64}, at::kLong);
  at::Tensor grad = half(60000, {64, 2});
  EXPECT_TRUE(
      all_infinite(gradient(kernels::embedding(weight, ids), weight, grad).narrow(0, 1, 1)));
  grad.narrow(0, 32, 32).neg_();
  EXPECT_TRUE(all_finite(gradient(kernels::embedding(weight, ids), weight, grad)));
}

TEST(Fp16, DropoutOverflowsForwardAndBackward) {
  const at::Tensor x = leaf(half(60000, {1, 8, 8}));
  const at::Tensor y = dropout(x, 0.5, {.seed = 1, .rows = {0}});
  const at::Tensor kept = y.detach() != 0;
  EXPECT_GT(kept.sum().item<std::int64_t>(), 0);
  EXPECT_TRUE(all_infinite(y.detach().masked_select(kept)));
  EXPECT_TRUE(all_infinite(gradient(y, x, half(60000, {1, 8, 8})).masked_select(kept)));
}

}  // namespace
}  // namespace zeroth::kernels
