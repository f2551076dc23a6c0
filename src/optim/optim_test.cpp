#include "base/error.h"
#include "optim/norm.h"
#include "optim/test_shard.h"
#include <gtest/gtest.h>

namespace zeroth::optim {
namespace {

constexpr int kUpdates = 20;

// Halves of a shard: the first decays, the second does not.
TestShard half_decayed(std::int64_t numel) {
  TestShard shard(static_cast<std::size_t>(numel));
  shard.segments = {{.range = {0, numel / 2}, .decays = true},
                    {.range = {numel / 2, numel}, .decays = false}};
  return shard;
}

// The weight after kUpdates of the optimizer, whose gradients are stored at twice their size.
float weight_after(const Optimizer& optimizer, double learning_rate) {
  TestShard shard(8);
  for (int t = 1; t <= kUpdates; ++t) {
    shard.set_gradients(2 * test_gradient(t));
    optimizer.update(shard.view(),
                     {.update = t, .learning_rate = learning_rate, .gradient_scale = 0.5});
  }
  return shard.master[5];
}

TEST(AdamW, FollowsTheFormulaInDoublePrecision) {
  double m = 0;
  double v = 0;
  double w = 1;
  for (int t = 1; t <= kUpdates; ++t) {
    const double gradient = test_gradient(t);
    m = 0.9 * m + 0.1 * gradient;
    v = 0.99 * v + 0.01 * gradient * gradient;
    w -= 0.01 * 0.1 * w;
    w -= 0.01 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.99, t))) + 1e-8);
  }
  const auto adamw =
      make_adamw({.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1});
  EXPECT_NEAR(weight_after(*adamw, 0.01), w, 2e-6);
}

TEST(Adam, AddsTheDecayToTheGradient) {
  double m = 0;
  double v = 0;
  double w = 1;
  for (int t = 1; t <= kUpdates; ++t) {
    const double gradient = test_gradient(t) + 0.1 * w;
    m = 0.9 * m + 0.1 * gradient;
    v = 0.99 * v + 0.01 * gradient * gradient;
    w -= 0.01 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.99, t))) + 1e-8);
  }
  const auto adam = make_adam({.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1});
  EXPECT_NEAR(weight_after(*adam, 0.01), w, 2e-6);
}

TEST(Adam, WithoutBiasCorrectionTheFirstUpdateIsSmall) {
  for (const auto make : {make_adamw, make_adam}) {
    TestShard shard(2);
    shard.set_gradients(1.0);
    const auto plain = make({.beta2 = 0.99, .epsilon = 0, .bias_correction = false});
    plain->update(shard.view(), {.update = 1, .learning_rate = 0.1});
    EXPECT_FLOAT_EQ(shard.master[0], 0.9F);  // 1 - 0.1 x 0.1 / sqrt(0.01)
    plain->update(shard.view(), {.update = 2, .learning_rate = 0.1});
    EXPECT_FLOAT_EQ(shard.master[0], static_cast<float>(0.9 - 0.1 * 0.19 / std::sqrt(0.0199)));
  }
}

TEST(Sgd, FollowsTheFormulaInDoublePrecision) {
  double velocity = 0;
  double w = 1;
  double nesterov_w = 1;
  double nesterov_velocity = 0;
  for (int t = 1; t <= kUpdates; ++t) {
    const double gradient = test_gradient(t) + 0.1 * w;
    velocity = t == 1 ? gradient : 0.9 * velocity + 0.75 * gradient;
    w -= 0.05 * velocity;
    const double other = test_gradient(t) + 0.1 * nesterov_w;
    nesterov_velocity = 0.9 * nesterov_velocity + other;
    nesterov_w -= 0.05 * (other + 0.9 * nesterov_velocity);
  }
  const auto dampened = make_sgd({.momentum = 0.9, .dampening = 0.25, .weight_decay = 0.1});
  EXPECT_NEAR(weight_after(*dampened, 0.05), w, 2e-6);
  const auto nesterov = make_sgd({.momentum = 0.9, .nesterov = true, .weight_decay = 0.1});
  EXPECT_NEAR(weight_after(*nesterov, 0.05), nesterov_w, 2e-6);
}

TEST(Sgd, MomentumStartsAsTheFirstGradient) {
  TestShard shard(2);
  shard.set_gradients(1.0);
  const auto sgd = make_sgd({.momentum = 0.5});
  ASSERT_EQ(sgd->num_moments(), 1);
  sgd->update(shard.view(), {.update = 1, .learning_rate = 0.1});
  EXPECT_FLOAT_EQ(shard.master[0], 0.9F);
  sgd->update(shard.view(), {.update = 2, .learning_rate = 0.1});
  EXPECT_FLOAT_EQ(shard.master[0], 0.75F);
}

TEST(Sgd, NesterovLooksAhead) {
  TestShard shard(2);
  shard.set_gradients(1.0);
  const auto sgd = make_sgd({.momentum = 0.5, .nesterov = true});
  sgd->update(shard.view(), {.update = 1, .learning_rate = 0.1});
  EXPECT_FLOAT_EQ(shard.master[0], 0.85F);  // buffer 1: 0.1 x (1 + 0.5 x 1)
  sgd->update(shard.view(), {.update = 2, .learning_rate = 0.1});
  EXPECT_FLOAT_EQ(shard.master[0], 0.675F);  // buffer 1.5: 0.1 x (1 + 0.5 x 1.5)
}

TEST(Sgd, HoldsNothingWithoutMomentumAndNesterovNeedsIt) {
  EXPECT_EQ(make_sgd({})->num_moments(), 0);
  EXPECT_THROW(make_sgd({.nesterov = true}), Error);
  EXPECT_THROW(make_sgd({.momentum = 0.9, .dampening = 0.1, .nesterov = true}), Error);
}

TEST(Lion, FollowsTheFormulaInDoublePrecision) {
  double m = 0;
  double w = 1;
  for (int t = 1; t <= kUpdates; ++t) {
    const double gradient = test_gradient(t);
    const double blend = 0.9 * m + 0.1 * gradient;
    w -= 0.01 * ((blend > 0 ? 1 : -1) + 0.1 * w);
    m = 0.99 * m + 0.01 * gradient;
  }
  const auto lion = make_lion({.weight_decay = 0.1});
  ASSERT_EQ(lion->num_moments(), 1);
  EXPECT_NEAR(weight_after(*lion, 0.01), w, 2e-6);
}

TEST(Lion, MovesNothingWhereNothingPulls) {
  TestShard shard(2);
  make_lion({})->update(shard.view(), {.update = 1, .learning_rate = 0.1});
  EXPECT_EQ(shard.master[0], 1.0F);
}

TEST(Adagrad, FollowsTheFormulaInDoublePrecision) {
  double sum = 0;
  double w = 1;
  for (int t = 1; t <= kUpdates; ++t) {
    const double gradient = test_gradient(t) + 0.1 * w;
    sum += gradient * gradient;
    w -= 0.05 / (1 + (t - 1) * 0.2) * gradient / (std::sqrt(sum) + 1e-10);
  }
  const auto adagrad = make_adagrad({.learning_rate_decay = 0.2, .weight_decay = 0.1});
  ASSERT_EQ(adagrad->num_moments(), 1);
  EXPECT_NEAR(weight_after(*adagrad, 0.05), w, 2e-6);
}

TEST(Adagrad, StepsShrinkWithTheRootOfTheSum) {
  TestShard shard(2);
  const auto adagrad = make_adagrad({});
  shard.set_gradients(3.0);
  adagrad->update(shard.view(), {.update = 1, .learning_rate = 0.1});
  EXPECT_FLOAT_EQ(shard.master[0], 0.9F);  // 3 / sqrt(9)
  shard.set_gradients(4.0);
  adagrad->update(shard.view(), {.update = 2, .learning_rate = 0.1});
  EXPECT_FLOAT_EQ(shard.master[0], 0.82F);  // 4 / sqrt(25)
}

TEST(OneCycle, ItsBetasReplaceTheOptimizersOwn) {
  for (const bool adam : {true, false}) {
    TestShard given(2);
    TestShard own(2);
    given.set_gradients(1.0);
    own.set_gradients(1.0);
    const auto usual = adam ? make_adam({}) : make_lion({});
    const auto other =
        adam ? make_adam({.beta1 = 0.5, .beta2 = 0.6}) : make_lion({.beta1 = 0.5, .beta2 = 0.6});
    usual->update(given.view(), {.update = 1, .learning_rate = 0.1, .betas = {{0.5, 0.6}}});
    other->update(own.view(), {.update = 1, .learning_rate = 0.1});
    EXPECT_EQ(given.first, own.first);
    EXPECT_EQ(given.master, own.master);
  }
}

TEST(Segment, ItsRateFactorAndDecayAreItsOwn) {
  TestShard shard(6);
  shard.segments = {{.range = {0, 2}},
                    {.range = {2, 4}, .rate_factor = 0.5, .weight_decay = 0.0},
                    {.range = {4, 6}, .decays = false, .weight_decay = 0.5}};
  shard.set_gradients(1.0);
  make_sgd({.weight_decay = 1.0})->update(shard.view(), {.update = 1, .learning_rate = 0.1});
  EXPECT_FLOAT_EQ(shard.master[0], 0.8F);
  EXPECT_FLOAT_EQ(shard.master[2], 0.95F);
  EXPECT_FLOAT_EQ(shard.master[4], 0.9F);
}

// Every optimizer, with this weight decay.
std::vector<std::unique_ptr<Optimizer>> all_optimizers(double weight_decay) {
  std::vector<std::unique_ptr<Optimizer>> all;
  all.push_back(make_adamw({.weight_decay = weight_decay}));
  all.push_back(make_adam({.weight_decay = weight_decay}));
  all.push_back(make_sgd({.momentum = 0.9, .weight_decay = weight_decay}));
  all.push_back(make_lion({.weight_decay = weight_decay}));
  all.push_back(make_adagrad({.weight_decay = weight_decay}));
  all.push_back(make_lamb({.weight_decay = weight_decay}));
  return all;
}

// With a ratio of 1 for an optimizer that uses norms.
void update_once(const Optimizer& optimizer, TestShard& shard, const UpdateStep& step) {
  if (optimizer.uses_norms()) {
    std::vector<Optimizer::Norms> norms(shard.segments.size());
    optimizer.measure(shard.view(), step, norms);
    shard.ratios.assign(shard.segments.size(), 1.0);
  }
  optimizer.update(shard.view(), step);
}

// Half the rate is half the way, whichever the optimizer: decoupled decay shrinks with it.
TEST(Segment, HalfTheRateIsHalfTheWayInEveryOptimizer) {
  for (const auto& optimizer : all_optimizers(0.5)) {
    TestShard shard(4);
    shard.segments = {{.range = {0, 2}}, {.range = {2, 4}, .rate_factor = 0.5}};
    shard.set_gradients(1.0);
    update_once(*optimizer, shard, {.update = 1, .learning_rate = 0.125});
    EXPECT_LT(shard.master[0], 1.0F);
    EXPECT_NEAR(1 - shard.master[2], (1 - shard.master[0]) / 2, 1e-7);
  }
}

TEST(Segment, NeighboursThatMoveAlikeDifferInTheirParameterOnly) {
  const Segment one{.range = {0, 2}, .weight_decay = 0.1, .parameter = 0};
  Segment other{.range = {2, 4}, .weight_decay = 0.1, .parameter = 1};
  EXPECT_TRUE(move_alike(one, other));
  other.weight_decay.reset();
  EXPECT_FALSE(move_alike(one, other));
  other = {.range = {2, 4}, .rate_factor = 2, .weight_decay = 0.1};
  EXPECT_FALSE(move_alike(one, other));
  other = {.range = {2, 4}, .decays = false, .weight_decay = 0.1};
  EXPECT_FALSE(move_alike(one, other));
}

// Large segments are moved by several threads, in vectors; the ends of each are not.
TEST(Segment, EveryElementOfALargeOneMovesAsASmallOneDoes) {
  const auto adamw = make_adamw({.weight_decay = 0.1});
  TestShard small(1);
  TestShard large((1 << 16) + 3);
  for (int t = 1; t <= 3; ++t) {
    small.set_gradients(test_gradient(t));
    large.set_gradients(test_gradient(t));
    adamw->update(small.view(), {.update = t, .learning_rate = 0.01});
    adamw->update(large.view(), {.update = t, .learning_rate = 0.01});
  }
  EXPECT_EQ(large.master, std::vector<float>(large.master.size(), small.master[0]));
}

TEST(N37, WeightDecayLeavesNormsAndBiasesAlone) {
  for (const auto& optimizer : all_optimizers(0.1)) {
    TestShard shard = half_decayed(4);
    update_once(*optimizer, shard, {.update = 1, .learning_rate = 1e-2});
    EXPECT_LT(shard.master[0], 1.0F);
    EXPECT_EQ(shard.master[3], 1.0F);
  }
  TestShard shard = half_decayed(4);
  make_adamw({.weight_decay = 0.1})->update(shard.view(), {.update = 1, .learning_rate = 1e-2});
  EXPECT_FLOAT_EQ(shard.master[0], 0.999F);
}

TEST(N38, SmallUpdatesArriveInTheMaster) {
  TestShard shard(2);
  shard.master.assign(2, 0.02F);
  shard.set_gradients(1.0);
  const auto sgd = make_sgd({});
  for (int t = 1; t <= 1000; ++t) {
    sgd->update(shard.view(), {.update = t, .learning_rate = 1e-6});
  }
  EXPECT_NEAR(0.02 - shard.master[0], 1e-3, 1e-5);
}

TEST(Norm, DoesNotDependOnTheOrderOfThreads) {
  std::vector<float> values(100'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(std::sin(static_cast<double>(i)));
  }
  const double once = sum_of_squares(values);
  EXPECT_EQ(once, sum_of_squares(values));
  EXPECT_NEAR(once, 50'000, 10);
  EXPECT_EQ(sum_of_squares({}), 0);
}

TEST(N24, ClippingScalesTheNormToTheLimit) {
  EXPECT_NEAR(5.0 * clip_factor(5.0, 1.0), 1.0, 1e-6);
  EXPECT_EQ(clip_factor(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_factor(100.0, 0.0), 1.0);
}

}  // namespace
}  // namespace zeroth::optim
