#include <cmath>

#include "base/error.h"
#include "parity/runs.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// Overflow, loss scale, norm and clipping, from worked numbers: networks of a few weights whose
// gradients the batch gives.
namespace zeroth::parity {
namespace {

using engine::Engine;
using engine::EngineOptions;
using engine::StepReport;

// Loss = w . c with one target: the gradient is c, the batch's first input.
class Slope : public models::Unit {
 public:
  Slope(std::int64_t numel, at::ScalarType dtype, double first = 0) : Unit("slope") {
    parameters_.push_back({.name = "w",
                           .value = at::full({numel}, first, dtype),
                           .trainable = true,
                           .decays = false});
  }

  [[nodiscard]] at::Tensor forward(const models::ForwardContext& context,
                                   const at::Tensor& /*input*/) override {
    return (parameters_[0].value.to(at::kFloat) * context.batch.inputs[0]).sum();
  }
};

models::TokenBatch batch_with(const std::vector<double>& gradient) {
  return {.num_targets = 1, .inputs = {at::tensor(gradient, at::kFloat)}};
}

struct Trained {
  Trained(std::int64_t numel,
          EngineOptions options,
          std::shared_ptr<comm::Communicator> comm,
          std::unique_ptr<optim::Optimizer> rule = optim::make_sgd({})) {
    units.push_back(std::make_unique<Slope>(numel, options.dtype));
    engine = std::make_unique<Engine>(units, std::move(rule), options, std::move(comm));
  }

  StepReport micro_step(const std::vector<double>& gradient) const {
    engine->backward(engine->forward(batch_with(gradient)));
    return engine->step();
  }

  [[nodiscard]] double weight() const { return engine->parameter_value("w")[0].item<double>(); }

  models::UnitList units;
  std::unique_ptr<Engine> engine;
};

// Scales mean what DeepSpeed's do: a divisor of 1 leaves the loss to them alone.
EngineOptions plain(at::ScalarType dtype, double rate, int stage = 0) {
  EngineOptions options{
      .zero_stage = stage, .dtype = dtype, .max_grad_norm = 0, .schedule = constant_rate(rate)};
  options.gradient_divisor = 1;
  return options;
}

using CommPtr = std::shared_ptr<comm::Communicator>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// (3, 4) at every stage, in every type, clipped or not.
TEST(N23, TheNormIsFiveInAllTwentyFourCombinations) {
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (int stage = 0; stage <= 3; ++stage) {
      for (const double limit : {0.0, 1.0}) {
        on_threads(2, [&](const CommPtr& comm) {
          EngineOptions options = plain(dtype, 0.5, stage);
          options.max_grad_norm = limit;
          options.loss_scale.initial_power = 8;
          const Trained trained(2, options, comm);
          const StepReport report = trained.micro_step({3, 4});
          EXPECT_EQ(report.grad_norm, 5.0) << dtype << " stage " << stage;
          EXPECT_NEAR(report.clip_factor, limit == 0 ? 1.0 : 0.2, 1e-6);
        });
      }
    }
  }
}

TEST(N22, TheUpdateOnWhichTheScaleGrowsMovesLikeTheOthers) {
  for (int stage = 0; stage <= 3; ++stage) {
    on_threads(2, [&](const CommPtr& comm) {
      EngineOptions options = plain(at::kHalf, 0.1, stage);
      options.loss_scale = {.initial_power = 8, .window = 2};
      const Trained trained(1, options, comm);
      std::vector<double> scales;
      for (int update = 1; update <= 7; ++update) {
        const StepReport report = trained.micro_step({1});
        scales.push_back(report.loss_scale);
        EXPECT_NEAR(trained.weight(), -0.1 * update, 1e-6);
      }
      // First growth after window + 1 clean updates.
      EXPECT_EQ(scales, (std::vector<double>{256, 256, 256, 512, 512, 1024, 1024}));
    });
  }
}

// N13: one skip, three updates; rate, step and Adam's corrections are those of a run without it.
TEST(N13, ASkippedAttemptMovesNothingButTheScale) {
  arithmetic::Schedule warm_up{.kind = arithmetic::ScheduleKind::kConstantWithWarmup,
                               .peak = 1e-2,
                               .warmup_updates = 10,
                               .total_updates = 100};
  for (int stage = 0; stage <= 3; ++stage) {
    on_threads(2, [&](const CommPtr& comm) {
      EngineOptions options = plain(at::kHalf, 1e-2, stage);
      options.schedule = warm_up;
      options.loss_scale = {.initial_power = 8, .hysteresis = 1};
      const Trained skipping(1, options, comm, optim::make_adamw({}));
      const Trained clean(1, options, comm, optim::make_adamw({}));
      const bool overflows_here = comm->rank() == 1;  // on some ranks only: all skip
      const StepReport skipped = skipping.micro_step({overflows_here ? kInfinity : 1.0});
      EXPECT_TRUE(skipped.window_finished);
      EXPECT_FALSE(skipped.updated);
      EXPECT_FALSE(std::isfinite(skipped.grad_norm));
      EXPECT_EQ(skipped.loss_scale, 256);
      EXPECT_EQ(skipped.next_loss_scale, 128);
      for (int update = 1; update <= 3; ++update) {
        const StepReport report = skipping.micro_step({1});
        const StepReport expected = clean.micro_step({1});
        EXPECT_EQ(report.step, update);
        EXPECT_EQ(report.attempts, update + 1);
        EXPECT_EQ(report.learning_rate, expected.learning_rate);
        EXPECT_EQ(skipping.weight(), clean.weight());
      }
    });
  }
}

TEST(N28, AnOverflowAtTheMinimumSaysSoAndNamesTheParameter) {
  on_threads(2, [](const CommPtr& comm) {
    EngineOptions options = plain(at::kHalf, 0.1, 2);
    options.loss_scale = {.initial_power = 1, .hysteresis = 1, .min_scale = 1};
    const Trained trained(2, options, comm);
    StepReport report = trained.micro_step({1, 1e5});  // beyond 65504
    EXPECT_EQ(report.next_loss_scale, 1);
    EXPECT_FALSE(report.stuck_at_minimum);
    report = trained.micro_step({1, 1e5});
    EXPECT_TRUE(report.stuck_at_minimum);
    EXPECT_EQ(report.next_loss_scale, 1);
    EXPECT_NE(report.non_finite.find("slope"), std::string::npos) << report.non_finite;
  });
}

TEST(N28, TheGradientThatIsNotFiniteIsNamed) {
  on_threads(2, [](const CommPtr& comm) {
    EngineOptions options = plain(at::kHalf, 0.1, 1);
    options.loss_scale = {.initial_power = 15, .hysteresis = 1};
    const Trained trained(2, options, comm);
    // 100 is fine in the forward (w is 0), 100 * 2^15 is not in the backward.
    const StepReport report = trained.micro_step({1, 100});
    EXPECT_EQ(report.non_finite, "the gradient of w (unit slope)");
  });
}

TEST(N30, HysteresisBearsAnOverflow) {
  const auto scales = [](bool consecutive, const std::vector<bool>& overflows) {
    EngineOptions options = plain(at::kHalf, 0.1);
    options.loss_scale = {.hysteresis = 2, .consecutive_hysteresis = consecutive};
    std::vector<double> result;
    on_threads(1, [&](const CommPtr& comm) {
      const Trained trained(1, options, comm);
      for (const bool overflow : overflows) {
        result.push_back(trained.micro_step({overflow ? kInfinity : 0.25}).next_loss_scale);
      }
    });
    return result;
  };
  EXPECT_EQ(scales(false, {true, true}), (std::vector<double>{65536, 32768}));
  EXPECT_EQ(scales(false, {true, false, true}), (std::vector<double>{65536, 65536, 32768}));
  EXPECT_EQ(scales(true, {true, false, true}), (std::vector<double>{65536, 65536, 65536}));
}

TEST(N34, AFixedScaleStaysAndOverflowSkips) {
  on_threads(2, [](const CommPtr& comm) {
    EngineOptions options = plain(at::kHalf, 0.1, 3);
    options.loss_scale.fixed = 128;
    const Trained trained(1, options, comm);
    EXPECT_EQ(trained.micro_step({1}).loss_scale, 128);
    const StepReport skipped = trained.micro_step({kInfinity});
    EXPECT_FALSE(skipped.updated);
    EXPECT_EQ(skipped.next_loss_scale, 128);
    EXPECT_TRUE(trained.micro_step({1}).updated);
    EXPECT_NEAR(trained.weight(), -0.2, 1e-6);
  });
}

TEST(Bf16, OverflowIsSkippedOrAppliedAsAsked) {
  for (const bool skip : {true, false}) {
    on_threads(2, [&](const CommPtr& comm) {
      EngineOptions options = plain(at::kBFloat16, 0.1, 2);
      options.skip_non_finite = skip;
      const Trained trained(1, options, comm);
      const StepReport report = trained.micro_step({kInfinity});
      EXPECT_EQ(report.updated, !skip);
      EXPECT_EQ(std::isfinite(trained.weight()), skip);
      EXPECT_FALSE(report.non_finite.empty());
    });
  }
}

// N19: 512 gradients of 1 in fp32 and in bf16, which stalls at 256.
TEST(N19, SumsOverMicroStepsInBf16StallAndInFp32DoNot) {
  for (const int stage : {0, 1, 2}) {
    for (const bool narrow : {false, true}) {
      on_threads(1, [&](const CommPtr& comm) {
        EngineOptions options = plain(at::kBFloat16, 1.0, stage);
        options.accumulation_steps = 512;
        if (narrow) {
          options.tuning.grad_accum = comm::NumberType::kBFloat16;
        }
        const Trained trained(1, options, comm);
        StepReport report;
        for (int micro_step = 0; micro_step < 512; ++micro_step) {
          report = trained.micro_step({1});
        }
        EXPECT_EQ(report.grad_norm, narrow ? 0.5 : 1.0) << "stage " << stage;
      });
    }
  }
}

TEST(N18, Bf16WithAccumulationHasANormOfOne) {
  for (int stage = 0; stage <= 3; ++stage) {
    on_threads(2, [&](const CommPtr& comm) {
      EngineOptions options = plain(at::kBFloat16, 0.1, stage);
      options.accumulation_steps = 4;
      const Trained trained(1, options, comm);
      StepReport report;
      for (int micro_step = 0; micro_step < 4; ++micro_step) {
        report = trained.micro_step({1});
      }
      EXPECT_EQ(report.grad_norm, 1.0);
    });
  }
}

TEST(N25, ClippingIsOfTheWindowsMean) {
  on_threads(1, [](const CommPtr& comm) {
    EngineOptions options = plain(at::kFloat, 1.0);
    options.accumulation_steps = 2;
    options.max_grad_norm = 1.0;
    const Trained trained(2, options, comm);
    (void)trained.micro_step({3, 0});
    EXPECT_EQ(trained.micro_step({0, 4}).grad_norm, 2.5);
    const at::Tensor w = trained.engine->parameter_value("w");
    EXPECT_NEAR(w[0].item<double>(), -0.6, 1e-6);
    EXPECT_NEAR(w[1].item<double>(), -0.8, 1e-6);
  });
}

// Values of parameters, gradients and moments, whole, under every stage.
TEST(Access, ReadsAndWritesWholeValuesUnderEveryStage) {
  for (int stage = 0; stage <= 3; ++stage) {
    on_threads(2, [&](const CommPtr& comm) {
      const Trained trained(
          40, plain(at::kBFloat16, 1.0, stage), comm, optim::make_sgd({.momentum = 0.5}));
      const at::Tensor values = at::arange(40, at::kFloat);
      trained.engine->set_parameter_value("w", values);
      EXPECT_TRUE(at::equal(trained.engine->parameter_value("w"), values));
      trained.engine->set_moment_value("w", 0, values);
      EXPECT_TRUE(at::equal(trained.engine->moment_value("w", 0), values));
      trained.engine->backward(trained.engine->forward(batch_with(std::vector<double>(40, 2.0))));
      EXPECT_TRUE(at::equal(trained.engine->gradient_value("w"), at::full({40}, 2.0F)));
      trained.engine->set_gradient_value("w", at::full({40}, 3.0F));
      EXPECT_TRUE(at::equal(trained.engine->gradient_value("w"), at::full({40}, 3.0F)));
      EXPECT_TRUE(trained.engine->step().updated);
      // velocity = 0.5 * values + 3, and w = values - velocity
      EXPECT_TRUE(at::equal(trained.engine->parameter_value("w"), values * 0.5F - 3));
      EXPECT_THROW((void)trained.engine->parameter_value("v"), Error);
    });
  }
}

}  // namespace
}  // namespace zeroth::parity
