#include "kernels/lora_linear.h"

#include "kernels/choice.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

namespace zeroth::kernels {
namespace {

struct Shape {
  std::vector<std::int64_t> rows;
  std::int64_t in, out, rank;
};

// Values and gradients of one computation, in fp64.
std::vector<at::Tensor> everything(
    const Shape& shape, at::ScalarType dtype, Choice choice, bool own_input, bool trains_weight) {
  const ChoiceScope scope(choice);
  at::manual_seed(7);
  const auto random = [&](std::vector<std::int64_t> sizes, bool trains) {
    return at::randn(sizes, at::kDouble).to(dtype).requires_grad_(trains);
  };
  std::vector<std::int64_t> x_sizes = shape.rows;
  x_sizes.push_back(shape.in);
  const at::Tensor x = random(x_sizes, true);
  const at::Tensor weight = random({shape.out, shape.in}, trains_weight);
  const at::Tensor a = random({shape.rank, shape.in}, true);
  const at::Tensor b = random({shape.out, shape.rank}, true);
  const at::Tensor factors = random(x_sizes, false);
  const at::Tensor z = own_input ? x * factors : at::Tensor();
  const at::Tensor y = lora_linear(x, weight, z, a, b, 0.375);
  const at::Tensor wanted = random(y.sizes().vec(), false);
  std::vector<at::Tensor> inputs{x, a, b};
  if (trains_weight) {
    inputs.push_back(weight);
  }
  std::vector<at::Tensor> all = torch::autograd::grad({y}, inputs, {wanted});
  all.push_back(y.detach());
  for (at::Tensor& tensor : all) {
    tensor = tensor.to(at::kDouble);
  }
  return all;
}

// Of a number, relative to it: what fast and reference versions may differ by where the latter
// happens to round to the exact value.
double one_rounding(at::ScalarType dtype) {
  return dtype == at::kBFloat16 ? 0x1.0p-8 : 0x1.0p-11;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm().clamp_min(1e-30)).item<double>();
}

TEST(LoraLinear, IsTheSumOfItsProductsForwardAndBackward) {
  const std::vector<Shape> shapes{
      {{2, 5}, 16, 24, 4}, {{1}, 7, 3, 1}, {{3, 17}, 33, 65, 16}, {{4, 64}, 96, 40, 8}};
  for (const Shape& shape : shapes) {
    for (const bool own_input : {false, true}) {
      for (const bool trains : {false, true}) {
        SCOPED_TRACE(::testing::Message() << shape.in << "x" << shape.out << " own input "
                                          << own_input << " trains " << trains);
        const auto exact = everything(shape, at::kDouble, Choice::kReference, own_input, trains);
        for (const at::ScalarType dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
          const auto slow = everything(shape, dtype, Choice::kReference, own_input, trains);
          const auto fast = everything(shape, dtype, Choice::kAuto, own_input, trains);
          ASSERT_EQ(fast.size(), exact.size());
          for (std::size_t i = 0; i < exact.size(); ++i) {
            const double most = dtype == at::kFloat
                                    ? 2e-6
                                    : 1.5 * distance(slow[i], exact[i]) + one_rounding(dtype);
            EXPECT_LT(distance(fast[i], exact[i]), most) << i;
          }
        }
      }
    }
  }
}

TEST(LoraLinear, NothingIsComputedForAnInputThatNeedsNoGradient) {
  const at::Tensor x = at::randn({4, 8});
  const at::Tensor a = at::randn({2, 8}).requires_grad_(true);
  const at::Tensor b = at::randn({6, 2}).requires_grad_(true);
  const at::Tensor y = lora_linear(x, at::randn({6, 8}), {}, a, b, 1.0);
  const auto grads = torch::autograd::grad({y.sum()}, {a, b});
  EXPECT_TRUE(grads[0].defined());
  EXPECT_FALSE(x.grad().defined());
  const at::Tensor expected = at::ones({4, 6}).matmul(b.detach()).t().matmul(x);
  EXPECT_LT(distance(grads[0], expected), 1e-6);
}

}  // namespace
}  // namespace zeroth::kernels
