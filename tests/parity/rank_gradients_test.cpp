#include <algorithm>
#include <functional>
#include <vector>

#include "base/error.h"
#include "engine/engine.h"
#include "parity/runs.h"
#include <gtest/gtest.h>

#include <ATen/ATen.h>

// What becomes of each rank's gradients: a model of three numbers whose gradient is what the batch
// says, on ranks that are threads.
namespace zeroth::engine {
namespace {

// Loss sum = w . (c, c, c) with one target, where c is the batch's one id: each gradient is c.
class Slope : public models::Unit {
 public:
  explicit Slope(at::ScalarType dtype) : Unit("slope") {
    parameters_.push_back(
        {.name = "w", .value = at::full({3}, 1.0, dtype), .trainable = true, .decays = false});
  }

  [[nodiscard]] at::Tensor forward(const models::ForwardContext& context,
                                   const at::Tensor& /*input*/) override {
    return (parameters_[0].value * context.batch.ids_BT.to(parameters_[0].value.scalar_type()))
        .sum()
        .to(at::kFloat);
  }
};

models::TokenBatch batch_with(std::int64_t gradient) {
  return {.ids_BT = at::full({1, 1}, gradient, at::kLong), .rows = {0}, .num_targets = 1};
}

struct Setting {
  int stage = 0;
  at::ScalarType dtype = at::kFloat;
  double learning_rate = 0.5;
};

// One rank's model and engine: SGD without clipping.
struct Trained {
  Trained(const Setting& setting, std::shared_ptr<comm::Communicator> comm) {
    units.push_back(std::make_unique<Slope>(setting.dtype));
    engine = std::make_unique<Engine>(
        units,
        optim::make_sgd({}),
        EngineOptions{.zero_stage = setting.stage,
                      .dtype = setting.dtype,
                      .accumulation_steps = 2,
                      .max_grad_norm = 0,
                      .schedule = parity::constant_rate(setting.learning_rate)},
        std::move(comm));
  }

  StepReport micro_step(std::int64_t gradient) const {
    engine->backward(engine->forward(batch_with(gradient)));
    return engine->step();
  }

  models::UnitList units;
  std::unique_ptr<Engine> engine;
};

using Body = std::function<void(const Trained&, std::int64_t rank)>;

void on_two_ranks(const Setting& setting, const Body& body) {
  parity::on_threads(2, [&](const std::shared_ptr<comm::Communicator>& comm) {
    body(Trained(setting, comm), comm->rank());
  });
}

void expect_all(const at::Tensor& values, double expected) {
  EXPECT_TRUE(at::equal(values.to(at::kDouble), at::full({3}, expected, at::kDouble))) << values;
}

TEST(N16, NoMicroBatchIsLostInAnyStage) {
  for (int stage = 0; stage <= 3; ++stage) {
    SCOPED_TRACE(stage);
    on_two_ranks({.stage = stage}, [](const Trained& trained, std::int64_t /*rank*/) {
      EXPECT_FALSE(trained.micro_step(1).window_finished);
      trained.engine->backward(trained.engine->forward(batch_with(3)));
      expect_all(trained.engine->gradient_value("w"), 2.0);
      EXPECT_TRUE(trained.engine->step().updated);
      expect_all(trained.engine->parameter_value("w"), 0.0);  // 1 - 0.5 * 2
    });
  }
}

TEST(N16, ABackwardThatWouldCountTwiceIsAnError) {
  models::UnitList units;
  units.push_back(std::make_unique<Slope>(at::kFloat));
  Engine engine(units, optim::make_sgd({}), {.zero_stage = 2});
  const Loss loss = engine.forward(batch_with(1));
  engine.backward(loss);
  EXPECT_THROW(engine.backward(loss), Error);
}

TEST(N17, TheLastMicroBatchIsReducedWithTheOthers) {
  std::vector<at::Tensor> weights(2);
  on_two_ranks({.stage = 1, .dtype = at::kBFloat16, .learning_rate = 0.3},
               [&](const Trained& trained, std::int64_t rank) {
                 (void)trained.micro_step(1);
                 trained.engine->backward(trained.engine->forward(batch_with(rank == 0 ? 1 : 5)));
                 expect_all(trained.engine->gradient_value("w"), 2.0);  // (1 + 1 + 1 + 5) / 4
                 EXPECT_TRUE(trained.engine->step().updated);
                 trained.engine->settle();
                 weights[static_cast<std::size_t>(rank)] =
                     trained.units[0]->parameters()[0].value.detach().clone();
               });
  EXPECT_TRUE(at::equal(weights[0], weights[1])) << weights[0] << weights[1];
  EXPECT_NEAR(weights[0][0].item<double>(), 0.4, 2e-3);
}

}  // namespace
}  // namespace zeroth::engine
