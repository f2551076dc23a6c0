#include <cmath>

#include "optim/norm.h"
#include "optim/optimizer.h"
#include <gtest/gtest.h>

namespace zeroth::optim {
namespace {

// One shard of plain vectors with a first segment that decays and a second that does not.
struct Shard {
  std::vector<float> master, gradients, first, second;
  std::vector<Segment> segments;

  explicit Shard(std::size_t numel)
      : master(numel, 1.0F), gradients(numel), first(numel), second(numel) {
    const auto half = static_cast<std::int64_t>(numel / 2);
    segments = {{.range = {0, half}, .decays = true},
                {.range = {half, static_cast<std::int64_t>(numel)}, .decays = false}};
  }

  ShardView view() {
    return {
        .master = master, .gradients = gradients, .moments = {first, second}, .segments = segments};
  }
};

TEST(AdamW, FollowsTheFormulaInDoublePrecision) {
  Shard shard(8);
  const auto adamw =
      make_adamw({.beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8, .weight_decay = 0.1});
  double m = 0;
  double v = 0;
  double w = 1;
  for (int t = 1; t <= 20; ++t) {
    const double gradient = std::sin(t);
    shard.gradients.assign(8, static_cast<float>(2 * gradient));
    adamw->update(shard.view(), {.update = t, .learning_rate = 0.01, .gradient_scale = 0.5});
    m = 0.9 * m + 0.1 * gradient;
    v = 0.99 * v + 0.01 * gradient * gradient;
    w -= 0.01 * 0.1 * w;
    w -= 0.01 * (m / (1 - std::pow(0.9, t))) / (std::sqrt(v / (1 - std::pow(0.99, t))) + 1e-8);
  }
  EXPECT_NEAR(shard.master[0], w, 2e-6);
  EXPECT_GT(shard.master[7], shard.master[0]);
}

TEST(N37, WeightDecayLeavesNormsAndBiasesAlone) {
  Shard shard(4);
  make_adamw({.weight_decay = 0.1})->update(shard.view(), {.update = 1, .learning_rate = 1e-2});
  EXPECT_FLOAT_EQ(shard.master[0], 0.999F);
  EXPECT_EQ(shard.master[3], 1.0F);
}

TEST(N38, SmallUpdatesArriveInTheMaster) {
  Shard shard(2);
  shard.master.assign(2, 0.02F);
  shard.gradients.assign(2, 1.0F);
  const auto sgd = make_sgd({});
  for (int t = 1; t <= 1000; ++t) {
    sgd->update(shard.view(), {.update = t, .learning_rate = 1e-6});
  }
  EXPECT_NEAR(0.02 - shard.master[0], 1e-3, 1e-5);
}

TEST(Sgd, MomentumStartsAsTheFirstGradient) {
  Shard shard(2);
  shard.gradients.assign(2, 1.0F);
  const auto sgd = make_sgd({.momentum = 0.5});
  ASSERT_EQ(sgd->num_moments(), 1);
  sgd->update(shard.view(), {.update = 1, .learning_rate = 0.1});
  EXPECT_FLOAT_EQ(shard.master[0], 0.9F);
  sgd->update(shard.view(), {.update = 2, .learning_rate = 0.1});
  EXPECT_FLOAT_EQ(shard.master[0], 0.75F);
}

TEST(Norm, DoesNotDependOnTheOrderOfThreads) {
  std::vector<float> values(100'000);
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(std::sin(static_cast<double>(i)));
  }
  const double once = sum_of_squares(values);
  EXPECT_EQ(once, sum_of_squares(values));
  EXPECT_NEAR(once, 50'000, 10);
}

TEST(N24, ClippingScalesTheNormToTheLimit) {
  EXPECT_NEAR(5.0 * clip_factor(5.0, 1.0), 1.0, 1e-6);
  EXPECT_EQ(clip_factor(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_factor(100.0, 0.0), 1.0);
}

}  // namespace
}  // namespace zeroth::optim
