#include "zeroth/torch_module.h"

#include "library/test_support.h"

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

// torch::nn modules and chains, against LibTorch's own autograd.
namespace zeroth::testing {
namespace {

namespace nn = torch::nn;

// Values by a rule, the same in every copy.
void set_by_rule(nn::Module& module) {
  const c10::NoGradGuard no_grad;
  std::int64_t offset = 0;
  for (at::Tensor& parameter : module.parameters()) {
    parameter.copy_(
        at::sin(at::arange(offset, offset + parameter.numel(), at::kFloat)).view_as(parameter));
    offset += parameter.numel();
  }
}

nn::Sequential small_net() {
  nn::Sequential net(nn::Linear(3, 4),
                     nn::ReLU(nn::ReLUOptions().inplace(true)),
                     nn::Linear(4, 4),
                     nn::Tanh(),
                     nn::Linear(4, 2));
  set_by_rule(*net);
  return net;
}

Batch rows(std::int64_t first, std::int64_t count) {
  const at::Tensor x =
      at::cos(at::arange(first * 3, (first + count) * 3, at::kFloat)).view({count, 3});
  const at::Tensor y = at::arange(first, first + count, at::kLong).remainder(2);
  return {.tensors = {x, y}};
}

Loss token_loss(const at::Tensor& logits, const Batch& batch) {
  return {at::cross_entropy_loss(logits, batch.tensors[1], {}, at::Reduction::Sum), logits.size(0)};
}

// Two updates of plain SGD over eight rows, by autograd alone.
std::vector<at::Tensor> expected_weights() {
  nn::Sequential net = small_net();
  for (int update = 0; update < 2; ++update) {
    net->zero_grad();
    const Batch batch = rows(0, 8);
    const Loss loss = token_loss(net->forward(batch.tensors[0]), batch);
    (loss.sum / loss.weight).backward();
    const c10::NoGradGuard no_grad;
    for (at::Tensor& parameter : net->parameters()) {
      parameter -= 0.5 * parameter.grad();
    }
  }
  return net->parameters();
}

Config settings(int stage) {
  Config config;
  config.set("train_batch_size", 8)
      .set("gradient_accumulation_steps", 2)
      .set("zero_optimization.stage", stage)
      .set("optimizer.type", "SGD")
      .set("optimizer.params.lr", 0.5)
      .set("gradient_clipping", 0.0);
  return config;
}

void train_and_compare(Engine& engine, const Runtime& runtime, const nn::Sequential& names) {
  const std::int64_t count = 4 / runtime.size();
  for (int update = 0; update < 2; ++update) {
    for (std::int64_t part = 0; part < 2; ++part) {
      const std::int64_t first = (part * runtime.size() + runtime.rank()) * count;
      (void)micro_step(engine, rows(first, count));
    }
  }
  const std::vector<at::Tensor> expected = expected_weights();
  std::size_t index = 0;
  for (const auto& entry : names->named_parameters()) {
    const at::Tensor difference = engine.parameter(entry.key()) - expected[index++];
    EXPECT_LT(difference.abs().max().item<double>(), 1e-6) << entry.key();
  }
}

TEST(Modules, AChainAndACallableGiveAutogradsWeightsUnderEveryStage) {
  for (int ranks = 1; ranks <= 2; ++ranks) {
    for (int stage = 0; stage <= (ranks == 1 ? 0 : 3); ++stage) {
      on_ranks(ranks, [&](const Runtime& runtime) {
        nn::Sequential chain = small_net();
        Engine by_units = initialize(runtime, model_of(chain, token_loss), settings(stage));
        EXPECT_TRUE(contains(by_units.start_table(), "model: 3 units"));
        train_and_compare(by_units, runtime, chain);

        nn::Sequential whole = small_net();
        Engine by_module =
            initialize(runtime,
                       model_of(whole,
                                [whole](const Batch& batch) mutable {
                                  return token_loss(whole->forward(batch.tensors[0]), batch);
                                }),
                       settings(stage));
        train_and_compare(by_module, runtime, whole);
      });
    }
  }
}

// A weight that is used twice and known under two names (N43).
struct Tied : nn::Module {
  Tied() : weight(register_parameter("encoder", at::full({2}, 3.0F))) {
    register_parameter("decoder", weight);
  }

  at::Tensor weight;
};

TEST(Modules, AParameterUnderTwoNamesCountsOnce) {
  for (int stage = 0; stage <= 3; ++stage) {
    on_ranks(2, [&](const Runtime& runtime) {
      const auto tied = std::make_shared<Tied>();
      Engine engine = initialize(runtime,
                                 model_of(tied,
                                          [tied](const Batch& batch) {
                                            const at::Tensor once = tied->weight * batch.tensors[0];
                                            return Loss{(once * tied->weight).sum()};
                                          }),
                                 plain(0.1, stage));
      EXPECT_EQ(engine.parameter_names(), std::vector<std::string>{"encoder"});
      engine.backward(engine.forward(batch_of({1, 1})));
      EXPECT_TRUE(at::equal(engine.gradient("decoder"), at::full({2}, 6.0F)));
      (void)engine.step();
      EXPECT_TRUE(contains(engine.start_table(), "2 of 2 parameters trainable"));
    });
  }
}

TEST(Modules, AChildThatStandsTwiceInAChainIsRefused) {
  const auto errors = errors_on(1, [](const Runtime& runtime) {
    const nn::Linear layer(2, 2);
    nn::Sequential chain(layer, nn::Tanh(), layer);
    (void)initialize(runtime, model_of(chain, token_loss), plain(1.0));
  });
  EXPECT_TRUE(contains(errors[0], "parameter 0.weight is in two units, 0 and 2")) << errors[0];
}

TEST(Modules, FrozenParametersStay) {
  on_ranks(2, [](const Runtime& runtime) {
    nn::Sequential chain = small_net();
    for (at::Tensor& parameter : chain[0]->parameters()) {
      parameter.requires_grad_(false);
    }
    const at::Tensor before = chain[0]->parameters()[0].clone();
    Engine engine = initialize(runtime, model_of(chain, token_loss), settings(3));
    for (int part = 0; part < 2; ++part) {
      (void)micro_step(engine, rows(0, 2));
    }
    EXPECT_TRUE(at::equal(engine.parameter("0.weight"), before));
    EXPECT_TRUE(contains(engine.start_table(), "30 of 46 parameters trainable"))
        << engine.start_table();
  });
}

TEST(Modules, Bf16ConvertsFrozenParametersToo) {
  on_ranks(1, [](const Runtime& runtime) {
    nn::Sequential chain = small_net();
    for (at::Tensor& parameter : chain[0]->parameters()) {
      parameter.requires_grad_(false);
    }
    Config config = settings(0);
    config.set("bf16.enabled", true);
    Engine engine = initialize(runtime,
                               model_of(chain,
                                        [](const at::Tensor& logits, const Batch& batch) {
                                          return token_loss(logits.to(at::kFloat), batch);
                                        }),
                               config);
    Batch batch = rows(0, 4);
    batch.tensors[0] = batch.tensors[0].to(engine.dtype());
    const StepLoss loss = engine.forward(batch);
    EXPECT_GT(loss.mean(), 0.1);
    engine.backward(loss);
  });
}

// Dropout is off in evaluation, and each module is in its own mode afterwards.
TEST(Modules, EvaluationHasAModeOfItsOwn) {
  on_ranks(1, [](const Runtime& runtime) {
    nn::Sequential chain(nn::Linear(3, 2), nn::Dropout(0.9), nn::BatchNorm1d(2));
    set_by_rule(*chain);
    chain[2]->eval();
    Engine engine = initialize(runtime, model_of(chain, token_loss), settings(0));
    const double first = engine.evaluate(rows(0, 4)).mean();
    EXPECT_EQ(engine.evaluate(rows(0, 4)).mean(), first);
    EXPECT_TRUE(chain[1]->is_training());
    EXPECT_FALSE(chain[2]->is_training());
    const StepLoss loss = engine.forward(rows(0, 4));
    EXPECT_NE(loss.mean(), first);
    engine.backward(loss);
  });
}

// A run repeats its masks, and the program's own random numbers go on as if there were no engine.
TEST(Modules, DropoutComesFromTheSeedAlone) {
  on_ranks(1, [](const Runtime& runtime) {
    at::manual_seed(1);
    const at::Tensor expected = at::rand({2});
    const auto losses = [&](int seed) {
      nn::Sequential chain(nn::Linear(3, 2), nn::Dropout(0.5));
      set_by_rule(*chain);
      Config config = settings(0);
      config.set("seed", seed);
      Engine engine = initialize(runtime, model_of(chain, token_loss), config);
      at::manual_seed(1);
      std::vector<double> result;
      for (int part = 0; part < 4; ++part) {
        const StepLoss loss = engine.forward(rows(0, 4));
        result.push_back(loss.sum());
        engine.backward(loss);
        (void)engine.step();
      }
      EXPECT_TRUE(at::equal(at::rand({2}), expected));
      return result;
    };
    const std::vector<double> once = losses(5);
    EXPECT_EQ(losses(5), once);
    EXPECT_NE(losses(6), once);
    EXPECT_NE(once[0], once[1]);  // micro-steps have masks of their own
  });
}

TEST(Modules, InferIsForChainsAlone) {
  on_ranks(1, [](const Runtime& runtime) {
    nn::Sequential chain = small_net();
    Engine engine = initialize(runtime, model_of(chain, token_loss), settings(0));
    const at::Tensor logits = engine.infer(rows(0, 3));
    EXPECT_TRUE(at::allclose(logits, small_net()->forward(rows(0, 3).tensors[0])));

    nn::Linear layer(3, 2);
    Engine whole = initialize(runtime,
                              model_of(layer,
                                       [layer](const Batch& batch) mutable {
                                         return token_loss(layer(batch.tensors[0]), batch);
                                       }),
                              settings(0));
    EXPECT_TRUE(contains(error_of([&] { (void)whole.infer(rows(0, 3)); }), "loss alone"));
  });
}

TEST(Modules, InPlaceOnAUnitsInputIsExplained) {
  const auto errors = errors_on(1, [](const Runtime& runtime) {
    struct InPlace : nn::Module {
      InPlace() : bias(register_parameter("bias", at::zeros({2}))) {}

      at::Tensor forward(at::Tensor x) { return x.relu_() + bias; }

      at::Tensor bias;
    };
    nn::Sequential chain(nn::Linear(3, 2), std::make_shared<InPlace>());
    Engine engine = initialize(runtime, model_of(chain, token_loss), settings(0));
    (void)engine.forward(rows(0, 4));
  });
  EXPECT_TRUE(contains(errors[0], "unit 1: ")) << errors[0];
  EXPECT_TRUE(contains(errors[0], "may not change its input in place")) << errors[0];
}

TEST(Modules, StageThreeWithOneUnitIsNoticed) {
  on_ranks(2, [](const Runtime& runtime) {
    const auto tied = std::make_shared<Tied>();
    const Engine engine =
        initialize(runtime,
                   model_of(tied, [tied](const Batch&) { return Loss{tied->weight.sum()}; }),
                   plain(0.1, 3));
    EXPECT_TRUE(contains(engine.start_table(), "gathers the whole model"));
  });
}

}  // namespace
}  // namespace zeroth::testing
