#include "kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "kernels/choice.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <torch/csrc/autograd/autograd.h>

namespace zeroth::kernels {
namespace {

struct Case {
  std::int64_t rows = 2, queries = 17, earlier = 0, key_heads = 2, group = 2, head_dim = 8;
  std::int64_t window = 0;
  double soft_cap = 0;

  [[nodiscard]] std::int64_t keys() const { return queries + earlier; }
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.rows << " rows, " << c.queries << " queries after " << c.earlier << ", " << c.key_heads
       << " x " << c.group << " heads of " << c.head_dim << ", window " << c.window << ", cap "
       << c.soft_cap;
}

using Tensors = std::vector<at::Tensor>;

// Laid out as projections give them: tokens before heads.
at::Tensor heads(std::int64_t rows, std::int64_t heads, std::int64_t tokens, std::int64_t size) {
  return at::randn({rows, tokens, heads, size}).transpose(1, 2);
}

// q, k, v and the gradient of the result.
Tensors inputs_of(const Case& c, at::ScalarType type = at::kFloat) {
  at::manual_seed(7);
  const at::Tensor q = heads(c.rows, c.key_heads * c.group, c.queries, c.head_dim);
  const at::Tensor k = heads(c.rows, c.key_heads, c.keys(), c.head_dim);
  const at::Tensor v = heads(c.rows, c.key_heads, c.keys(), c.head_dim);
  return {q.to(type), k.to(type), v.to(type), at::randn_like(q).to(type)};
}

double scale_of(const Case& c) {
  return 1.3 / std::sqrt(static_cast<double>(c.head_dim));
}

at::Tensor first_keys_of(const Case& c) {
  return causal_first_keys(c.queries, c.keys(), c.window);
}

template <typename Operation>
Tensors with_gradients(const Tensors& inputs, const Operation& operation) {
  Tensors leaves;
  for (std::size_t i = 0; i < 3; ++i) {
    leaves.push_back(inputs[i].detach().requires_grad_(true));
  }
  const at::Tensor out = operation(leaves[0], leaves[1], leaves[2]);
  Tensors results{out.detach()};
  for (const at::Tensor& grad : torch::autograd::grad({out}, leaves, {inputs[3]})) {
    results.push_back(grad);
  }
  return results;
}

// The result and the gradients of q, k and v.
Tensors run(const Tensors& inputs, const at::Tensor& first_keys, const Case& c) {
  return with_gradients(inputs, [&](const auto& q, const auto& k, const auto& v) {
    return attention(q, k, v, first_keys, scale_of(c), c.soft_cap);
  });
}

Tensors run_reference(const Tensors& inputs, const at::Tensor& first_keys, const Case& c) {
  const ChoiceScope reference(Choice::kReference);
  return run(inputs, first_keys, c);
}

Tensors in_fp64(const Tensors& inputs) {
  Tensors wide;
  for (const at::Tensor& input : inputs) {
    wide.push_back(input.to(at::kDouble));
  }
  return wide;
}

// By ATen's operations and its autograd in fp64.
Tensors run_plain(const Tensors& inputs, const at::Tensor& first_keys, const Case& c) {
  return with_gradients(in_fp64(inputs), [&](const auto& q, const auto& k, const auto& v) {
    const at::Tensor keys = at::arange(c.keys());
    const at::Tensor first = first_keys.view({-1, 1, c.queries, 1});
    const at::Tensor own = at::arange(c.earlier, c.keys()).view({1, 1, -1, 1});
    const at::Tensor hidden = (keys < first).logical_or(keys > own);
    at::Tensor scores =
        at::matmul(q, k.repeat_interleave(c.group, 1).transpose(2, 3)) * scale_of(c);
    if (c.soft_cap > 0) {
      scores = c.soft_cap * (scores / c.soft_cap).tanh();
    }
    const at::Tensor weights =
        scores.masked_fill(hidden, -std::numeric_limits<double>::infinity()).softmax(-1);
    return at::matmul(weights, v.repeat_interleave(c.group, 1));
  });
}

double relative_error(const at::Tensor& value, const at::Tensor& expected) {
  return ((value.to(at::kDouble) - expected.to(at::kDouble)).norm() /
          (expected.to(at::kDouble).norm() + 1e-9))
      .item<double>();
}

void expect_close(const Tensors& values, const Tensors& expected, double tolerance) {
  constexpr std::array kNames{"out", "grad q", "grad k", "grad v"};
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_EQ(values[i].sizes(), expected[i].sizes());
    EXPECT_LT(relative_error(values[i], expected[i]), tolerance) << kNames[i];
  }
}

class AttentionCases : public testing::TestWithParam<Case> {};

TEST_P(AttentionCases, BothVersionsAreThePlainFormula) {
  const Case& c = GetParam();
  const Tensors inputs = inputs_of(c);
  const at::Tensor first_keys = first_keys_of(c);
  const Tensors expected = run_plain(inputs, first_keys, c);
  expect_close(run(inputs, first_keys, c), expected, 1e-5);
  expect_close(run_reference(inputs, first_keys, c), expected, 1e-5);
  expect_close(run_reference(in_fp64(inputs), first_keys, c), expected, 1e-12);
}

// Where the reference version is all but exact (one key), the bound is half a unit in the last
// place.
TEST_P(AttentionCases, NarrowTypesErrLittleMoreThanTheReference) {
  const Case& c = GetParam();
  const at::Tensor first_keys = first_keys_of(c);
  for (const at::ScalarType type : {at::kBFloat16, at::kHalf}) {
    const Tensors inputs = inputs_of(c, type);
    const Tensors expected = run_reference(in_fp64(inputs), first_keys, c);
    const Tensors narrow = run_reference(inputs, first_keys, c);
    const Tensors fast = run(inputs, first_keys, c);
    const double unit = type == at::kHalf ? 0x1p-11 : 0x1p-8;
    for (std::size_t i = 0; i < fast.size(); ++i) {
      EXPECT_EQ(fast[i].scalar_type(), type);
      const double bound = std::max(1.5 * relative_error(narrow[i], expected[i]), unit);
      EXPECT_LE(relative_error(fast[i], expected[i]), bound) << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Shapes,
    AttentionCases,
    testing::Values(Case{.queries = 1},
                    Case{.queries = 2, .group = 1},
                    Case{.queries = 3, .group = 3, .head_dim = 20},
                    Case{.queries = 17, .group = 4, .head_dim = 80},
                    Case{.queries = 65, .group = 3, .head_dim = 64},
                    Case{.queries = 130, .key_heads = 1, .group = 4, .head_dim = 64},
                    Case{.rows = 1, .queries = 300, .key_heads = 3, .group = 3, .head_dim = 64},
                    Case{.queries = 1, .earlier = 70, .group = 3, .head_dim = 64},
                    Case{.queries = 65, .earlier = 9, .group = 2, .head_dim = 20},
                    Case{.queries = 130, .earlier = 300, .group = 1, .head_dim = 80},
                    Case{.rows = 1, .queries = 700, .key_heads = 1, .group = 2},
                    Case{.queries = 65, .window = 1},
                    Case{.queries = 130, .group = 3, .window = 7},
                    Case{.queries = 300, .earlier = 5, .key_heads = 1, .window = 7},
                    Case{.rows = 1, .queries = 700, .key_heads = 1, .window = 600},
                    Case{.queries = 65, .window = 90},
                    Case{.queries = 65, .group = 3, .soft_cap = 0.7},
                    Case{.queries = 130, .earlier = 3, .window = 7, .soft_cap = 2},
                    Case{.queries = 17, .head_dim = 256, .soft_cap = 50}));

TEST(Attention, AWindowCountsThePositionItself) {
  EXPECT_TRUE(at::equal(causal_first_keys(2, 5, 2), at::tensor({2, 3}, at::kInt)));
  EXPECT_TRUE(at::equal(causal_first_keys(4, 4, 4), causal_first_keys(4, 4)));
  EXPECT_TRUE(at::equal(causal_first_keys(2, 4), at::zeros({2}, at::kInt)));
}

// Case D18: examples packed into one row give what they give alone.
TEST(Attention, SegmentsOfOneRowAreRowsOfTheirOwn) {
  for (const double soft_cap : {0.0, 2.0}) {
    const Case c{.rows = 2, .queries = 200, .group = 3, .head_dim = 64, .soft_cap = soft_cap};
    const Tensors inputs = inputs_of(c);
    const std::vector<std::int64_t> cuts{83, 130};  // of row 0 and of row 1
    at::Tensor first_keys = at::zeros({2, c.queries}, at::kInt);
    for (std::int64_t row = 0; row < 2; ++row) {
      const std::int64_t cut = cuts[static_cast<std::size_t>(row)];
      first_keys[row].narrow(0, cut, c.queries - cut).fill_(cut);
    }
    const Tensors packed = run(inputs, first_keys, c);
    for (std::int64_t row = 0; row < 2; ++row) {
      const std::int64_t cut = cuts[static_cast<std::size_t>(row)];
      for (const auto& [begin, size] :
           {std::pair(std::int64_t{0}, cut), std::pair(cut, c.queries - cut)}) {
        const auto part = [&, first = begin, length = size](const at::Tensor& x) {
          return x.narrow(0, row, 1).narrow(2, first, length);
        };
        Tensors own;
        std::transform(inputs.begin(), inputs.end(), std::back_inserter(own), part);
        Tensors of_packed;
        std::transform(packed.begin(), packed.end(), std::back_inserter(of_packed), part);
        expect_close(of_packed, run(own, causal_first_keys(size, size), c), 1e-6);
      }
    }
  }
}

// A row with padding before it gives what it gives without, whatever stands in the padding; and the
// padding's own results are finite.
TEST(Attention, LeftPaddingChangesNoRow) {
  const Case c{.rows = 3, .queries = 70, .group = 3, .head_dim = 64};
  Tensors inputs = inputs_of(c);
  const std::vector<std::int64_t> padding{0, 5, 66};
  at::Tensor first_keys = at::zeros({3, c.queries}, at::kInt);
  for (std::int64_t row = 0; row < 3; ++row) {
    const std::int64_t hidden = padding[static_cast<std::size_t>(row)];
    first_keys[row] = at::arange(c.queries, at::kInt).clamp_max(hidden);
    inputs[1][row].narrow(1, 0, hidden).fill_(1000);
    inputs[2][row].narrow(1, 0, hidden).fill_(1000);
    inputs[3][row].narrow(1, 0, hidden).zero_();
  }
  const Tensors padded = run(inputs, first_keys, c);
  for (std::int64_t row = 0; row < 3; ++row) {
    const std::int64_t hidden = padding[static_cast<std::size_t>(row)];
    const auto seen = [&](const at::Tensor& x) {
      return x.narrow(0, row, 1).narrow(2, hidden, c.queries - hidden);
    };
    Tensors own;
    std::transform(inputs.begin(), inputs.end(), std::back_inserter(own), seen);
    Tensors of_padded;
    std::transform(padded.begin(), padded.end(), std::back_inserter(of_padded), seen);
    const std::int64_t length = c.queries - hidden;
    expect_close(of_padded, run(own, causal_first_keys(length, length), c), 1e-6);
  }
  for (const at::Tensor& result : padded) {
    EXPECT_TRUE(result.isfinite().all().item<bool>());
  }
}

TEST(Attention, AKeyCacheIsReadWhereItLies) {
  const Case c{.queries = 3, .earlier = 40, .group = 3, .head_dim = 64};
  Tensors inputs = inputs_of(c);
  const Tensors expected = run(inputs, first_keys_of(c), c);
  for (std::size_t i = 1; i < 3; ++i) {  // room for 64 positions
    const at::Tensor room = at::full({c.rows, c.key_heads, 64, c.head_dim}, 1e30);
    room.narrow(2, 0, c.keys()).copy_(inputs[i]);
    inputs[i] = room.narrow(2, 0, c.keys());
  }
  expect_close(run(inputs, first_keys_of(c), c), expected, 1e-6);
}

TEST(Attention, NotANumberReachesTheResult) {
  const Case c{.rows = 1, .queries = 40, .key_heads = 1, .group = 1};
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      const Tensors inputs = inputs_of(c, type);
      inputs[0][0][0][21][3] = bad;
      const at::Tensor sums = run(inputs, first_keys_of(c), c)[0].sum(-1)[0][0];
      EXPECT_TRUE(sums[21].isnan().item<bool>());
      EXPECT_TRUE(sums.narrow(0, 0, 21).isfinite().all().item<bool>());
    }
  }
}

TEST(Attention, AQueryThatWouldSeeNothingIsRefused) {
  const Case c{.queries = 4};
  const Tensors inputs = inputs_of(c);
  EXPECT_ANY_THROW((void)run(inputs, at::full({4}, 1, at::kInt), c));
  EXPECT_ANY_THROW((void)run(inputs, at::full({4}, -1, at::kInt), c));
  EXPECT_ANY_THROW((void)run(inputs, at::zeros({3}, at::kInt), c));
  EXPECT_ANY_THROW((void)run(inputs, at::zeros({4}, at::kLong), c));
}

TEST(Attention, TheSameThreadsGiveTheSameBits) {
  const int before = at::get_num_threads();
  const Case c{.rows = 1, .queries = 500, .key_heads = 3, .group = 3, .head_dim = 64};
  const Tensors inputs = inputs_of(c, at::kBFloat16);
  Tensors of_one_thread;
  for (const int threads : {1, 2, 3}) {
    at::set_num_threads(threads);
    const Tensors once = run(inputs, first_keys_of(c), c);
    const Tensors again = run(inputs, first_keys_of(c), c);
    for (std::size_t i = 0; i < once.size(); ++i) {
      EXPECT_TRUE(at::equal(once[i], again[i]));
    }
    EXPECT_EQ(at::get_num_threads(), threads);
    of_one_thread = threads == 1 ? once : of_one_thread;
    expect_close(once, of_one_thread, 5e-3);
  }
  at::set_num_threads(before);
}

// The largest allocation while it lives.
class LargestAllocation : public at::Allocator {
 public:
  LargestAllocation() : before_(c10::GetAllocator(at::kCPU)) {
    c10::SetAllocator(at::kCPU, this, 255);
  }

  ~LargestAllocation() override { c10::SetAllocator(at::kCPU, before_, 255); }

  [[nodiscard]] at::DataPtr allocate(std::size_t bytes) const override {
    largest_ = std::max(largest_, bytes);
    return before_->allocate(bytes);
  }

  [[nodiscard]] std::size_t bytes() const { return largest_; }

 private:
  at::Allocator* before_;
  mutable std::size_t largest_ = 0;
};

TEST(Attention, MemoryGrowsWithTokensNotWithTheirSquare) {
  const auto largest = [](std::int64_t tokens) {
    const Case c{.rows = 1, .queries = tokens, .key_heads = 1, .group = 3, .head_dim = 16};
    const Tensors inputs = inputs_of(c);
    const LargestAllocation largest_allocation;
    (void)run(inputs, first_keys_of(c), c);
    return largest_allocation.bytes();
  };
  EXPECT_LE(largest(2048), 2 * largest(1024));
  EXPECT_LT(largest(2048), 2048U * 2048U * sizeof(float));
}

}  // namespace
}  // namespace zeroth::kernels
