#include "kernels/embedding.h"

#include "kernels/versions.h"

#include <ATen/Parallel.h>

namespace zeroth::kernels {
namespace {

at::Tensor gradient(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& grad) {
  return torch::autograd::grad({kernels::embedding(weight, ids)}, {weight}, {grad}).front();
}

class Embeddings : public BothVersions {};

TEST_P(Embeddings, BothVersionsGiveTheSameBits) {
  for (const auto& [vocabulary, width, places] : {std::array{1, 1, 1},
                                                  std::array{7, 3, 40},
                                                  std::array{300, 33, 5},
                                                  std::array{600, 257, 900},
                                                  std::array{5, 128, 2000}}) {
    const at::Tensor weight = at::randn({vocabulary, width}).to(GetParam()).requires_grad_(true);
    const at::Tensor ids = at::randint(0, vocabulary, {places}, at::kLong);
    // Negative zeros and numbers of many sizes, whose sum depends on their order.
    const at::Tensor grad = (at::randn({places, width}) * at::randn({places, width}).mul(3).exp())
                                .mul(at::randint(-1, 2, {places, 1}))
                                .to(GetParam());
    const at::Tensor fast = gradient(ids, weight, grad);
    const ChoiceScope scope(Choice::kReference);
    const at::Tensor reference = gradient(ids, weight, grad);
    EXPECT_EQ(fast.scalar_type(), GetParam());
    EXPECT_TRUE(at::equal(fast, reference)) << vocabulary << " x " << width;
    EXPECT_TRUE(at::equal(fast.signbit(), reference.signbit())) << vocabulary << " x " << width;
  }
}

TEST_P(Embeddings, AnEmptyBatchGivesZeros) {
  const at::Tensor weight = at::randn({9, 4}).to(GetParam()).requires_grad_(true);
  const at::Tensor grad =
      gradient(at::empty({0}, at::kLong), weight, at::empty({0, 4}, weight.options()).detach());
  EXPECT_TRUE(at::equal(grad, at::zeros({9, 4}, GetParam())));
}

TEST_P(Embeddings, ATransposedGradientIsReadByItsValues) {
  const at::Tensor weight = at::randn({9, 4}).to(GetParam()).requires_grad_(true);
  const at::Tensor ids = at::randint(0, 9, {2, 6}, at::kLong);
  const at::Tensor grad = at::randn({4, 2, 6}).to(GetParam()).permute({1, 2, 0});
  EXPECT_TRUE(at::equal(gradient(ids, weight, grad), gradient(ids, weight, grad.contiguous())));
}

// So large that several threads share it.
TEST(LargeEmbedding, HasTheSameBitsOnAnyNumberOfThreads) {
  const at::Tensor weight = at::randn({9001, 1024}).to(at::kBFloat16).requires_grad_(true);
  const at::Tensor ids = at::randint(0, 9001, {4000}, at::kLong).square().remainder(9001);
  const at::Tensor grad = at::randn({4000, 1024}).to(at::kBFloat16);
  const int threads = at::get_num_threads();
  at::Tensor expected;
  {
    const ChoiceScope scope(Choice::kReference);
    expected = gradient(ids, weight, grad);
  }
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    EXPECT_TRUE(at::equal(gradient(ids, weight, grad), expected)) << count << " threads";
  }
  at::set_num_threads(threads);
}

INSTANTIATE_TEST_SUITE_P(Types,
                         Embeddings,
                         testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& test) { return name_of(test.param); });

}  // namespace
}  // namespace zeroth::kernels
