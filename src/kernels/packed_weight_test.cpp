#include "kernels/packed_weight.h"

#include <array>

#include "kernels/linear.h"
#include "kernels/linear_cross_entropy.h"
#include "kernels/lora_linear.h"
#include "kernels/parallel.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

namespace zeroth::kernels {
namespace {

// Whole numbers, of which every order of sums is exact.
at::Tensor whole_numbers(std::vector<std::int64_t> sizes, at::ScalarType dtype) {
  return at::randint(-2, 3, sizes, at::TensorOptions(at::kFloat)).to(dtype);
}

struct PackedMemory {
  explicit PackedMemory(std::int64_t bytes)
      : tensor(at::zeros({bytes + PackedWeight::kAlignment}, at::TensorOptions(at::kByte))) {}

  [[nodiscard]] std::byte* aligned() const {
    const auto address = reinterpret_cast<std::uintptr_t>(tensor.data_ptr());
    const std::uintptr_t step = PackedWeight::kAlignment;
    return reinterpret_cast<std::byte*>((address + step - 1) / step * step);
  }

  at::Tensor tensor;
};

// Null where this processor has no layout of its own.
PackedPtr packed(const at::Tensor& weight, Packing packing) {
  const MatrixShape shape{weight.size(0), weight.size(1), weight.scalar_type()};
  const std::int64_t bytes = PackedWeight::bytes_for(shape, packing);
  if (bytes == 0) {
    return nullptr;
  }
  const auto memory = std::make_shared<PackedMemory>(bytes);
  const auto result = std::make_shared<PackedWeight>(
      shape, packing, std::shared_ptr<std::byte>(memory, memory->aligned()));
  result->pack(weight);
  return result;
}

struct Shape {
  std::int64_t out, in;
};

constexpr std::array<Shape, 5> kShapes{{{192, 256}, {256, 192}, {70, 33}, {1, 5}, {1000, 64}}};

TEST(PackedWeight, GivesTheProductsOfThePlainOne) {
  at::manual_seed(3);
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const auto [out, in] : kShapes) {
      const at::Tensor weight = whole_numbers({out, in}, dtype);
      for (const Packing packing : {Packing::kForward, Packing::kBoth}) {
        const Weight both(weight, packed(weight, packing));
        for (const std::int64_t rows : {1, 3, 64, 700}) {
          for (const int threads : {1, 2}) {
            const ThreadsInUse in_use(threads);
            const at::Tensor x = whole_numbers({rows, in}, dtype);
            const at::Tensor g = whole_numbers({rows, out}, dtype);
            EXPECT_TRUE(at::equal(product(x, both, Side::kForward), product(x, weight.t())));
            EXPECT_TRUE(at::equal(product(g, both, Side::kInputGradient), product(g, weight)));
            const at::Tensor wide = at::empty({rows, out}, at::kFloat);
            product_into(wide, x, both, Side::kForward);
            EXPECT_TRUE(at::equal(wide, product(x, weight.t(), at::kFloat)));
          }
        }
      }
    }
  }
}

// A plain weight that is not there any more shows who was read: where a side is packed, nobody
// else.
TEST(PackedWeight, IsReadInPlaceOfThePlainOne) {
  at::manual_seed(4);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const at::Tensor weight = whole_numbers({256, 512}, dtype);
    const at::Tensor x = whole_numbers({96, 512}, dtype);
    const at::Tensor g = whole_numbers({96, 256}, dtype);
    const at::Tensor forward = product(x, weight.t());
    const at::Tensor backward = product(g, weight);
    for (const Packing packing : {Packing::kForward, Packing::kBoth}) {
      const PackedPtr there = packed(weight, packing);
      const Weight gone(at::zeros_like(weight), there);
      const at::Tensor of_gone = product(g, gone, Side::kInputGradient);
      EXPECT_TRUE(at::equal(product(x, gone, Side::kForward), there ? forward : forward * 0));
      EXPECT_TRUE(at::equal(of_gone, there && packing == Packing::kBoth ? backward : backward * 0));
    }
  }
}

// Values and gradients with a weight that is packed, or not.
std::vector<at::Tensor> of_linears(at::ScalarType dtype, bool packs) {
  at::manual_seed(5);
  const at::Tensor weight = whole_numbers({128, 192}, dtype);
  const Weight taken(weight, packs ? packed(weight, Packing::kBoth) : nullptr);
  const at::Tensor x = whole_numbers({2, 40, 192}, dtype).requires_grad_(true);
  const at::Tensor a = whole_numbers({4, 192}, dtype).requires_grad_(true);
  const at::Tensor b = at::zeros({128, 4}, dtype).requires_grad_(true);
  const at::Tensor plain = linear(x, taken);
  const at::Tensor adapted = lora_linear(x, taken, {}, a, b, 0.5);
  const at::Tensor grad = whole_numbers(plain.sizes().vec(), dtype);
  std::vector<at::Tensor> all{plain.detach(), adapted.detach()};
  for (const at::Tensor& y : {plain, adapted}) {
    all.push_back(torch::autograd::grad({y}, {x}, {grad}).front());
  }
  return all;
}

TEST(PackedWeight, ServesLinearsForwardAndBackward) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const std::vector<at::Tensor> without = of_linears(dtype, false);
    const std::vector<at::Tensor> with = of_linears(dtype, true);
    for (std::size_t i = 0; i < without.size(); ++i) {
      EXPECT_TRUE(at::equal(with[i], without[i])) << i;
    }
  }
}

// A graph outlives whoever packed.
TEST(PackedWeight, LivesAsLongAsTheGraph) {
  at::manual_seed(6);
  const at::Tensor weight = whole_numbers({64, 64}, at::kBFloat16);
  const at::Tensor x = whole_numbers({8, 64}, at::kBFloat16).requires_grad_(true);
  PackedPtr there = packed(weight, Packing::kBoth);
  const std::weak_ptr<const PackedWeight> watched = there;
  at::Tensor y = linear(x, {weight, there});
  const bool was_packed = there != nullptr;
  there.reset();
  EXPECT_EQ(!watched.expired(), was_packed);
  const at::Tensor grad = whole_numbers({8, 64}, at::kBFloat16);
  EXPECT_TRUE(at::equal(torch::autograd::grad({y}, {x}, {grad}).front(), product(grad, weight)));
  y.reset();
  EXPECT_TRUE(watched.expired());
}

TEST(PackedWeight, ServesTheHead) {
  at::manual_seed(7);
  const at::Tensor weight = whole_numbers({512, 64}, at::kBFloat16) / 8;
  const at::Tensor targets = at::randint(0, 512, {50}, at::kLong);
  const at::Tensor x = (whole_numbers({50, 64}, at::kBFloat16) / 4).requires_grad_(true);
  const at::Tensor plain = linear_cross_entropy(x, weight, targets);
  const at::Tensor by_packed =
      linear_cross_entropy(x, {weight, packed(weight, Packing::kBoth)}, targets);
  EXPECT_TRUE(at::equal(by_packed, plain));  // its logits are exact
  const auto gradient = [&](const at::Tensor& loss) {
    return torch::autograd::grad({loss}, {x}).front().to(at::kDouble);
  };
  const at::Tensor wanted = gradient(plain);
  EXPECT_LT((gradient(by_packed) - wanted).norm().item<double>(),
            0x1p-9 * wanted.norm().item<double>());  // roundings to bf16
}

}  // namespace
}  // namespace zeroth::kernels
