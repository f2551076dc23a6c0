#include "base/error.h"
#include "optim/test_shard.h"
#include <gtest/gtest.h>
#include <omp.h>

namespace zeroth::optim {
namespace {

using Norms = Optimizer::Norms;

constexpr UpdateStep kFirst{.update = 1, .learning_rate = 0.1};

// One update of shards that hold the pieces of one parameter, as the engine does it. Returns the
// ratio.
double update_pieces(const Optimizer& lamb,
                     std::vector<TestShard>& shards,
                     const UpdateStep& step) {
  Norms whole;
  for (TestShard& shard : shards) {
    std::vector<Norms> norms(1);
    lamb.measure(shard.view(), step, norms);
    whole.weights += norms[0].weights;
    whole.update += norms[0].update;
  }
  const double ratio = lamb.ratio(whole);
  for (TestShard& shard : shards) {
    shard.ratios = {ratio};
    lamb.update(shard.view(), step);
  }
  return ratio;
}

// A parameter of uneven numbers, cut at `border`.
std::vector<TestShard> cut_at(std::size_t numel, std::size_t border) {
  TestShard front(border);
  TestShard back(numel - border);
  for (std::size_t i = 0; i < numel; ++i) {
    TestShard& shard = i < border ? front : back;
    const std::size_t place = i < border ? i : i - border;
    shard.master[place] = static_cast<float>(std::sin(static_cast<double>(i)));
    shard.gradients[place] = static_cast<float>(std::cos(3.0 * static_cast<double>(i)));
  }
  return {front, back};
}

std::vector<float> joined(const std::vector<TestShard>& shards) {
  std::vector<float> weights;
  for (const TestShard& shard : shards) {
    weights.insert(weights.end(), shard.master.begin(), shard.master.end());
  }
  return weights;
}

TEST(Lamb, FollowsTheFormulaInDoublePrecision) {
  // Two elements with gradients of two sizes, so that the norms are not those of one element.
  const double scale[] = {1.0, 0.3};
  double m[2] = {};
  double v[2] = {};
  double w[2] = {1, 2};
  std::vector<TestShard> shards{TestShard(2)};
  shards[0].master = {1.0F, 2.0F};
  const auto lamb = make_lamb({.beta2 = 0.99, .weight_decay = 0.1});
  for (int t = 1; t <= 20; ++t) {
    double direction[2];
    double weights = 0;
    double moves = 0;
    for (int i = 0; i < 2; ++i) {
      const double gradient = test_gradient(t) * scale[i];
      shards[0].gradients[static_cast<std::size_t>(i)] = static_cast<float>(4 * gradient);
      m[i] = 0.9 * m[i] + 0.1 * gradient;
      v[i] = 0.99 * v[i] + 0.01 * gradient * gradient;
      direction[i] =
          m[i] / (1 - std::pow(0.9, t)) / (std::sqrt(v[i] / (1 - std::pow(0.99, t))) + 1e-8) +
          0.1 * w[i];
      weights += w[i] * w[i];
      moves += direction[i] * direction[i];
    }
    const double ratio = std::clamp(std::sqrt(weights / moves), 0.01, 10.0);
    for (int i = 0; i < 2; ++i) {
      w[i] -= 0.01 * ratio * direction[i];
    }
    const double used =
        update_pieces(*lamb, shards, {.update = t, .learning_rate = 0.01, .gradient_scale = 0.25});
    EXPECT_NEAR(used, ratio, 1e-5);
  }
  EXPECT_NEAR(shards[0].master[0], w[0], 3e-6);
  EXPECT_NEAR(shards[0].master[1], w[1], 3e-6);
}

TEST(Lamb, ACutThroughAParameterChangesNoRatio) {
  constexpr std::size_t kNumel = 3 * 4096 + 17;
  const auto lamb = make_lamb({.weight_decay = 0.01, .max_ratio = 1e9});
  std::vector<TestShard> whole = cut_at(kNumel, kNumel);
  const double expected = update_pieces(*lamb, whole, kFirst);
  for (const std::size_t border : {std::size_t{1}, std::size_t{16}, kNumel / 2, kNumel - 1}) {
    std::vector<TestShard> pieces = cut_at(kNumel, border);
    const double ratio = update_pieces(*lamb, pieces, kFirst);
    EXPECT_NEAR(ratio / expected, 1.0, 1e-12) << border;
    EXPECT_EQ(joined(pieces), joined(whole)) << border;
  }
}

TEST(Lamb, NormsDoNotDependOnTheNumberOfThreads) {
  const auto lamb = make_lamb({.weight_decay = 0.01});
  const int threads = omp_get_max_threads();
  std::vector<double> ratios;
  for (const int number : {1, 2, 5}) {
    omp_set_num_threads(number);
    std::vector<TestShard> shards = cut_at(100'003, 50'000);
    ratios.push_back(update_pieces(*lamb, shards, kFirst));
  }
  omp_set_num_threads(threads);
  EXPECT_EQ(ratios[0], ratios[1]);
  EXPECT_EQ(ratios[0], ratios[2]);
}

TEST(Lamb, TheRatioIsBounded) {
  const auto lamb = make_lamb({});
  EXPECT_DOUBLE_EQ(lamb->ratio({.weights = 9, .update = 4}), 1.5);
  EXPECT_EQ(lamb->ratio({.weights = 1e6, .update = 1e-6}), 10);
  EXPECT_EQ(lamb->ratio({.weights = 1e-6, .update = 1e6}), 0.01);
  EXPECT_EQ(make_lamb({.min_ratio = 0.5, .max_ratio = 2})->ratio({.weights = 100, .update = 1}), 2);
}

// Weights that start at zero, as LoRA's B does, would never leave it.
TEST(Lamb, WhereANormIsZeroTheRatioIsOne) {
  const auto lamb = make_lamb({});
  EXPECT_EQ(lamb->ratio({.weights = 0, .update = 4}), 1);
  EXPECT_EQ(lamb->ratio({.weights = 4, .update = 0}), 1);
}

TEST(Lamb, EachSegmentHasItsOwnNormsAndRatio) {
  TestShard shard(4);
  shard.master = {3.0F, 4.0F, 0.0F, 1.0F};
  shard.segments = {{.range = {0, 2}}, {.range = {2, 4}, .parameter = 1}};
  shard.set_gradients(1.0);
  const auto lamb = make_lamb({});
  std::vector<Norms> norms(2);
  lamb->measure(shard.view(), kFirst, norms);
  EXPECT_DOUBLE_EQ(norms[0].weights, 25);
  EXPECT_DOUBLE_EQ(norms[1].weights, 1);
  EXPECT_NEAR(norms[0].update, 2, 1e-6);
  shard.ratios = {2.0, 0.5};
  lamb->update(shard.view(), kFirst);
  EXPECT_NEAR(shard.master[0], 2.8, 1e-6);
  EXPECT_NEAR(shard.master[3], 0.95, 1e-6);
}

TEST(Lamb, NormsAndRatiosComeOneASegment) {
  TestShard shard(2);
  const auto lamb = make_lamb({});
  EXPECT_TRUE(lamb->uses_norms());
  EXPECT_THROW(lamb->measure(shard.view(), kFirst, {}), Error);
  EXPECT_THROW(lamb->update(shard.view(), kFirst), Error);
}

TEST(Lamb, TheOthersUseNoNorms) {
  TestShard shard(2);
  std::vector<Norms> norms(1);
  const auto adamw = make_adamw({});
  EXPECT_FALSE(adamw->uses_norms());
  EXPECT_EQ(adamw->ratio({}), 1);
  EXPECT_THROW(adamw->measure(shard.view(), kFirst, norms), Error);
}

}  // namespace
}  // namespace zeroth::optim
