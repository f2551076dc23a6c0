#include "kernels/simd/targets.h"

#include "kernels/attention.h"
#include "kernels/cross_entropy.h"
#include "kernels/gated.h"
#include "kernels/rms_norm.h"
#include "kernels/rope.h"
#include "kernels/versions.h"

// The vector code of every kind of processor that this one can stand in for.
namespace zeroth::kernels {
namespace {

class Targets : public BothVersions {};

INSTANTIATE_TEST_SUITE_P(Types,
                         Targets,
                         testing::Values(at::kFloat, at::kBFloat16, at::kHalf),
                         [](const auto& test) { return name_of(test.param); });

TEST_P(Targets, AgreeWithTheReference) {
  const at::Tensor angles = at::randn({1, 6, 19});
  const at::Tensor cos = angles.cos();
  const at::Tensor sin = angles.sin();
  const at::Tensor labels = at::randint(0, 1500, {5}, at::kLong);
  for (const simd::Target& target : simd::targets()) {
    SCOPED_TRACE(target.name);
    const simd::TargetScope scope(target);
    expect_versions_agree(
        [](const Tensors& in) {
          const SumAndNorm both = add_rms_norm(in[0], in[1], in[2], 1e-5);
          return Tensors{both.sum, both.normed};
        },
        {at::randn({7, 37}), at::randn({7, 37}), at::randn({37})},
        GetParam());
    for (const auto activation :
         {GateActivation::kSilu, GateActivation::kGelu, GateActivation::kGeluTanh}) {
      expect_versions_agree(
          [&](const Tensors& in) { return Tensors{gated(in[0], in[1], activation)}; },
          {at::randn({7, 37}), at::randn({7, 37})},
          GetParam());
    }
    for (const double soft_cap : {0.0, 2.0}) {
      const at::Tensor first_keys = causal_first_keys(21, 23, 9);
      expect_versions_agree(
          [&](const Tensors& in) {
            return Tensors{attention(in[0], in[1], in[2], first_keys, 0.3, soft_cap)};
          },
          {at::randn({2, 4, 21, 20}), at::randn({2, 2, 23, 20}), at::randn({2, 2, 23, 20})},
          GetParam());
    }
    expect_versions_agree([&](const Tensors& in) { return Tensors{rope(in[0], cos, sin)}; },
                          {at::randn({2, 6, 3, 38})},
                          GetParam());
    expect_versions_agree(
        [&](const Tensors& in) { return Tensors{cross_entropy_sum(in[0], labels, 5)}; },
        {at::randn({5, 1500})},
        GetParam());
  }
}

// Every number of 16 bits plus another one, which gives all kinds of roundings, is stored as ATen
// stores it.
TEST_P(Targets, RoundAsATenDoes) {
  if (GetParam() == at::kFloat) {
    return;
  }
  const at::Tensor bits = at::arange(0, 65536, at::kInt).to(at::kShort);
  const at::Tensor numbers = bits.view(GetParam());
  const at::Tensor ones = at::ones_like(numbers);
  for (const simd::Target& target : simd::targets()) {
    SCOPED_TRACE(target.name);
    const simd::TargetScope scope(target);
    for (const double other : {1.0, 0.5, 1.0 / 3, 1000.0, 6e-8}) {
      const at::Tensor added = at::full_like(numbers, other);
      const at::Tensor sum =
          add_rms_norm(numbers.unsqueeze(1), added.unsqueeze(1), ones.narrow(0, 0, 1), 1)
              .sum.squeeze(1);
      const at::Tensor expected = (numbers.to(at::kFloat) + added.to(at::kFloat)).to(GetParam());
      EXPECT_TRUE(at::equal(sum.isnan(), expected.isnan()));
      const at::Tensor is_number = expected.isnan().logical_not();
      EXPECT_TRUE(at::equal(sum.view(at::kShort).masked_select(is_number),
                            expected.view(at::kShort).masked_select(is_number)))
          << other;
    }
  }
}

}  // namespace
}  // namespace zeroth::kernels
