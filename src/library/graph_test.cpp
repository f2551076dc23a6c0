#include "library/test_support.h"

#include <c10/core/GradMode.h>

// Networks whose gradients would be lost without a word: named instead, on every rank and under
// every stage.
namespace zeroth::testing {
namespace {

using Forward = Unit::Forward;

// y = x * first, (y * second).sum(), where the second unit may do something else.
struct Chain {
  at::Tensor first = at::full({3}, 2.0F);
  at::Tensor second = at::full({3}, 5.0F);

  [[nodiscard]] Model with(Forward forward_of_second) const {
    return {
        .units = {{.name = "a",
                   .parameters = {{.name = "first", .value = first}},
                   .forward = [w = first](const at::Tensor&,
                                          const Pass& pass) { return pass.batch.tensors[0] * w; }},
                  {.name = "b",
                   .parameters = {{.name = "second", .value = second}},
                   .forward = std::move(forward_of_second)}},
        .loss = [](const at::Tensor& output, const Batch&) { return Loss{output.sum()}; }};
  }
};

// Both ranks' error of one update with such a model, at this stage.
std::vector<std::string> errors_at(int stage,
                                   const std::function<Model(const Chain&)>& model,
                                   const std::function<void(Config&)>& adjust = {}) {
  return errors_on(2, [&](const Runtime& runtime) {
    const Chain chain;
    Config config = plain(0.1, stage);
    if (adjust) {
      adjust(config);
    }
    Engine engine = initialize(runtime, model(chain), config);
    (void)micro_step(engine, batch_of({1, 2, 3}));
  });
}

void expect_named(const std::function<Model(const Chain&)>& model,
                  const std::vector<std::string>& words) {
  for (int stage = 0; stage <= 3; ++stage) {
    for (const std::string& error : errors_at(stage, model)) {
      for (const std::string& word : words) {
        EXPECT_TRUE(contains(error, word)) << "stage " << stage << ": " << error;
      }
    }
  }
}

void allow_unused(Config& config) {
  config.set("zero_optimization.ignore_unused_parameters", true);
}

TEST(Graph, AParameterOfAnotherUnitMustBeBorrowed) {
  expect_named(
      [](const Chain& chain) {
        return chain.with([chain](const at::Tensor& x, const Pass&) {
          return x * chain.second * chain.first.sum();
        });
      },
      {"unit b", "first", "borrows"});
}

TEST(Graph, TheLossMayNotReadAnotherUnitsParameter) {
  expect_named(
      [](const Chain& chain) {
        Model model =
            chain.with([chain](const at::Tensor& x, const Pass&) { return x * chain.second; });
        model.loss = [chain](const at::Tensor& output, const Batch&) {
          return Loss{output.sum() + chain.first.sum()};
        };
        return model;
      },
      {"(or the loss) reads parameter first of unit a", "borrows"});
}

TEST(Graph, ATensorThatIsNoParameterMustNotWantAGradient) {
  expect_named(
      [](const Chain& chain) {
        const at::Tensor stray = at::ones({3}).requires_grad_(true);
        return chain.with(
            [chain, stray](const at::Tensor& x, const Pass&) { return x * chain.second * stray; });
      },
      {"unit b", "shape [3]", "no parameter of the model"});
}

TEST(Graph, AUnitThatCutsTheGradientIsNamed) {
  const auto cut = [](const Chain& chain) {
    return chain.with(
        [chain](const at::Tensor& x, const Pass&) { return x.detach() * chain.second.detach(); });
  };
  for (int stage = 0; stage <= 3; ++stage) {
    for (const std::string& error : errors_at(stage, cut)) {
      EXPECT_TRUE(contains(error, "unit b")) << error;
      EXPECT_TRUE(contains(error, "no")) << error;
    }
  }
  const auto cut_in_the_middle = [](const Chain& chain) {
    Model model = chain.with(
        [chain](const at::Tensor& x, const Pass&) { return (x * chain.second).detach(); });
    const at::Tensor third = at::ones({3});
    model.units.push_back(
        {.name = "c",
         .parameters = {{.name = "third", .value = third}},
         .forward = [third](const at::Tensor& x, const Pass&) { return x * third; }});
    return model;
  };
  expect_named(cut_in_the_middle, {"unit b gave an output without a gradient"});
  for (const std::string& error : errors_at(2, cut_in_the_middle, allow_unused)) {
    EXPECT_EQ(error, "");
  }
}

// N42: nothing trains what nothing reads.
TEST(N42, AParameterWithoutAGradientInTheFirstUpdateIsNamed) {
  const auto unused = [](const Chain& chain) {
    return chain.with([](const at::Tensor& x, const Pass&) { return x * 1.0; });
  };
  expect_named(unused, {"no gradient reached second in the first update, on any rank"});
  for (const std::string& error : errors_at(1, unused, allow_unused)) {
    EXPECT_EQ(error, "");
  }
}

TEST(Graph, AUnitWithParametersAndWithoutAForwardIsRefused) {
  expect_named(
      [](const Chain& chain) {
        Model model =
            chain.with([chain](const at::Tensor& x, const Pass&) { return x * chain.second; });
        model.units[0].forward = nullptr;
        return model;
      },
      {"unit a has parameters and no forward"});
}

TEST(Graph, AtStageThreeAParameterIsEmptyOutsideItsUnit) {
  on_ranks(2, [](const Runtime& runtime) {
    const Chain chain;
    Engine engine = initialize(runtime,
                               chain.with([chain](const at::Tensor& x, const Pass&) {
                                 EXPECT_EQ(chain.first.numel(), 0);
                                 EXPECT_EQ(chain.second.numel(), 3);
                                 return x * chain.second;
                               }),
                               plain(0.1, 3));
    EXPECT_TRUE(micro_step(engine, batch_of({1, 2, 3})).updated);
    EXPECT_EQ(chain.second.numel(), 0);
    EXPECT_EQ(engine.parameter("second").numel(), 3);
  });
}

TEST(Graph, CallablesSeeTheNumberOfRows) {
  on_ranks(1, [](const Runtime& runtime) {
    Model model = slope(at::ones({2}));
    model.loss = [](const at::Tensor& output, const Batch& batch) {
      return Loss{output, batch.rows};
    };
    Engine engine = initialize(runtime, std::move(model), plain(1.0));
    const StepLoss loss = engine.forward({.tensors = {at::ones({1, 2})}});
    EXPECT_EQ(loss.weight(), 1);
  });
}

TEST(Skips, AsManyInARowAsAreAllowedEndTheRun) {
  const auto errors = errors_on(2, [](const Runtime& runtime) {
    Config config = plain(1.0, 2);
    config.set("max_skipped_updates", 3);
    Engine engine = initialize(runtime, slope(at::ones({1})), config);
    for (int update = 0; update < 2; ++update) {
      EXPECT_FALSE(micro_step(engine, batch_of({NAN})).updated);
    }
    (void)micro_step(engine, batch_of({NAN}));
  });
  for (const std::string& error : errors) {
    EXPECT_TRUE(contains(error, "3 attempts in a row made no update")) << error;
    EXPECT_TRUE(contains(error, "lower learning_rate, now 1")) << error;
  }
}

}  // namespace
}  // namespace zeroth::testing
