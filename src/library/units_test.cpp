#include "library/test_support.h"

// Lists of units: borrowed parameters, groups, values of parameters, gradients and moments.
namespace zeroth::testing {
namespace {

// y = x * first, then (y * second).sum(): two units of one parameter each.
Model chain(const at::Tensor& first, const at::Tensor& second) {
  return {
      .units = {{.name = "first",
                 .parameters = {{.name = "first.w", .value = first}},
                 .forward = [first](const at::Tensor&,
                                    const Pass& pass) { return pass.batch.tensors[0] * first; }},
                {.name = "second",
                 .parameters = {{.name = "second.w", .value = second}},
                 .forward = [second](const at::Tensor& input,
                                     const Pass&) { return input * second; }}},
      .loss = [](const at::Tensor& output, const Batch&) { return Loss{output.sum()}; }};
}

TEST(Units, GradientsPassTheBorderUnderEveryStage) {
  for (int stage = 0; stage <= 3; ++stage) {
    on_ranks(2, [&](const Runtime& runtime) {
      Engine engine =
          initialize(runtime, chain(at::full({3}, 2.0F), at::full({3}, 5.0F)), plain(0.1, stage));
      engine.backward(engine.forward(batch_of({1, 2, 3})));
      EXPECT_TRUE(at::equal(engine.gradient("first.w"), at::tensor({5.0F, 10.0F, 15.0F})));
      EXPECT_TRUE(at::equal(engine.gradient("second.w"), at::tensor({2.0F, 4.0F, 6.0F})));
      EXPECT_TRUE(engine.step().updated);
    });
  }
}

// N43, between units: a weight that two units read has the gradient of both uses.
TEST(Units, ABorrowedParameterGetsTheGradientOfBothUses) {
  for (int stage = 0; stage <= 3; ++stage) {
    on_ranks(2, [&](const Runtime& runtime) {
      const at::Tensor w = at::full({2}, 3.0F);
      Model model = chain(w, at::full({2}, 1.0F));
      model.units[1].borrows = {"first.w"};
      model.units[1].forward = [w](const at::Tensor& input, const Pass&) { return input * w; };
      Config config = plain(0.1, stage);
      config.set("zero_optimization.ignore_unused_parameters", true);  // second.w
      Engine engine = initialize(runtime, std::move(model), config);
      engine.backward(engine.forward(batch_of({1, 1})));
      EXPECT_TRUE(at::equal(engine.gradient("first.w"), at::full({2}, 6.0F)));
      (void)engine.step();
    });
  }
}

TEST(Units, ASharedParameterIsRefusedWithBothPlaces) {
  const at::Tensor w = at::ones({1});
  const auto errors = errors_on(
      1, [&](const Runtime& runtime) { (void)initialize(runtime, chain(w, w), plain(1.0)); });
  EXPECT_TRUE(contains(errors[0],
                       "parameter first.w is in two units, first and second (there as second.w)"))
      << errors[0];
}

TEST(Units, WhatCannotBeTrainedIsRefused) {
  const auto refused = [](const std::function<void(Model&)>& spoil) {
    return errors_on(1, [&](const Runtime& runtime) {
      Model model = chain(at::ones({1}), at::ones({1}));
      spoil(model);
      (void)initialize(runtime, std::move(model), plain(1.0));
    })[0];
  };
  EXPECT_TRUE(contains(refused([](Model& model) { model.units.clear(); }), "without units"));
  EXPECT_TRUE(contains(refused([](Model& model) { model.loss = nullptr; }), "without a loss"));
  EXPECT_TRUE(contains(refused([](Model& model) { model.units[1].name = "first"; }),
                       "two units are called first"));
  EXPECT_TRUE(contains(refused([](Model& model) { model.units[1].parameters[0].name = "first.w"; }),
                       "two parameters are called first.w"));
  EXPECT_TRUE(contains(refused([](Model& model) {
                         model.units[0].parameters[0].value = at::ones({1}, at::kDouble);
                       }),
                       "of type Double"));
  EXPECT_TRUE(contains(refused([](Model& model) { model.units[0].borrows = {"third.w"}; }),
                       "unit first borrows third.w"));
  EXPECT_TRUE(contains(refused([](Model& model) {
                         for (Unit& unit : model.units) {
                           unit.parameters[0].trainable = false;
                         }
                       }),
                       "nothing is trainable"));
}

// N44: a branch that only rank 0 takes.
TEST(Units, AParameterThatARankDoesNotUseHasNoGradientThere) {
  for (int stage = 0; stage <= 3; ++stage) {
    on_ranks(2, [&](const Runtime& runtime) {
      const at::Tensor w = at::ones({1});
      const at::Tensor branch = at::ones({1});
      Model model = slope(w);
      model.units[0].parameters.push_back({.name = "branch", .value = branch});
      const bool takes = runtime.rank() == 0;
      model.units[0].forward = [=](const at::Tensor&, const Pass& pass) {
        const at::Tensor y = w * pass.batch.tensors[0];
        return takes ? (y * branch).sum() : y.sum();
      };
      Engine engine = initialize(runtime, std::move(model), plain(1.0, stage));
      engine.backward(engine.forward(batch_of({4})));
      EXPECT_EQ(engine.gradient("branch").item<double>(), 2.0);  // 4 from one of two ranks
      EXPECT_TRUE(engine.step().updated);
    });
  }
}

TEST(Groups, DecayRateAndFreezingGoByName) {
  on_ranks(2, [](const Runtime& runtime) {
    Config config = plain(1.0, 2);
    config.set("optimizer.params.weight_decay", 0.5);
    Engine engine = initialize(runtime,
                               chain(at::full({1}, 2.0F), at::full({1}, 2.0F)),
                               config,
                               {{.names = {"first.*"}, .weight_decay = 0.0}});
    (void)micro_step(engine, batch_of({0}));  // no gradient: decay alone moves
    EXPECT_EQ(engine.parameter("first.w").item<double>(), 2.0);
    EXPECT_EQ(engine.parameter("second.w").item<double>(), 1.0);
    EXPECT_TRUE(contains(engine.start_table(),
                         "parameter group 1 (first.*): 1 parameters, "
                         "weight_decay 0"));
  });
  on_ranks(2, [](const Runtime& runtime) {
    Engine engine = initialize(
        runtime,
        chain(at::ones({1}), at::ones({1})),
        plain(1.0, 3),
        {{.names = {"first.w"}, .frozen = true}, {.names = {"*"}, .learning_rate_factor = 0.25}});
    (void)micro_step(engine, batch_of({2}));
    EXPECT_EQ(engine.parameter("first.w").item<double>(), 1.0);
    EXPECT_EQ(engine.parameter("second.w").item<double>(), 0.5);
    EXPECT_TRUE(contains(engine.start_table(), "1 of 2 parameters trainable"));
  });
}

// M07.
TEST(Groups, OneThatMatchesNothingTrainableIsIgnoredWithANotice) {
  on_ranks(1, [](const Runtime& runtime) {
    const Engine engine = initialize(runtime,
                                     chain(at::ones({1}), at::ones({1})),
                                     plain(1.0),
                                     {{.names = {"first.ww"}}, {.names = {"*"}}, {.names = {"*"}}});
    const std::string table = engine.start_table();
    EXPECT_TRUE(contains(table,
                         "notice: parameter group 1 (first.ww) is ignored: no parameter has "
                         "such a name (did you mean first.w?)"))
        << table;
    EXPECT_TRUE(contains(table,
                         "notice: parameter group 3 (*) is ignored: the parameters that it "
                         "names are frozen, or an earlier group's"))
        << table;
  });
  const auto all_frozen = errors_on(1, [](const Runtime& runtime) {
    (void)initialize(runtime,
                     chain(at::ones({1}), at::ones({1})),
                     plain(1.0),
                     {{.names = {"*"}, .frozen = true}});
  });
  EXPECT_TRUE(contains(all_frozen[0], "nothing is trainable: all 2 parameters")) << all_frozen[0];
}

TEST(Groups, ImpossibleValuesAreRefused) {
  const auto refused = [](const ParameterGroup& group) {
    return errors_on(1, [&](const Runtime& runtime) {
      (void)initialize(runtime, slope(at::ones({1})), plain(1.0), {group});
    })[0];
  };
  EXPECT_TRUE(contains(refused({.names = {}}), "names is empty"));
  EXPECT_TRUE(contains(refused({.names = {"*"}, .weight_decay = -1.0}), "weight_decay must be"));
  EXPECT_TRUE(contains(refused({.names = {"*"}, .learning_rate_factor = -1}), "must be 0 or more"));
}

// Values are whole and the same on all ranks, and what is written is used by the next step.
TEST(Access, ReadsAndWritesUnderEveryStage) {
  for (int stage = 0; stage <= 3; ++stage) {
    on_ranks(2, [&](const Runtime& runtime) {
      Config config = plain(1.0, stage);
      config.set("optimizer.params.momentum", 0.5);
      Engine engine = initialize(runtime, slope(at::zeros({5})), config);
      const at::Tensor values = at::arange(5, at::kFloat);
      engine.set_parameter("w", values);
      EXPECT_TRUE(at::equal(engine.parameter("w"), values));
      engine.set_moment("w", 0, values);
      EXPECT_TRUE(at::equal(engine.moment("w", 0), values));
      engine.backward(engine.forward(batch_of({2, 2, 2, 2, 2})));
      EXPECT_TRUE(at::equal(engine.gradient("w"), at::full({5}, 2.0F)));
      engine.set_gradient("w", at::full({5}, 3.0F));
      EXPECT_TRUE(engine.step().updated);
      // velocity = 0.5 * values + 3, and w = values - velocity
      EXPECT_TRUE(at::equal(engine.parameter("w"), values * 0.5F - 3)) << stage;
    });
  }
}

TEST(Access, WrongNamesShapesAndTimesAreRefused) {
  const auto refused = [](const std::function<void(Engine&)>& mistake) {
    return errors_on(1, [&](const Runtime& runtime) {
      Engine engine = initialize(runtime, slope(at::zeros({2})), plain(1.0));
      mistake(engine);
    })[0];
  };
  EXPECT_TRUE(contains(refused([](Engine& e) { (void)e.parameter("v"); }), "is called v"));
  EXPECT_TRUE(contains(refused([](Engine& e) { e.set_parameter("w", at::zeros({3})); }),
                       "shape [3] for parameter w, which has [2]"));
  EXPECT_TRUE(contains(refused([](Engine& e) { (void)e.gradient("w"); }), "no gradients now"));
  EXPECT_TRUE(contains(refused([](Engine& e) { (void)e.moment("w", 0); }),
                       "moment 0 of an optimizer that has 0"));
}

TEST(Access, FrozenParametersCanBeReadAndSet) {
  on_ranks(2, [](const Runtime& runtime) {
    Engine engine = initialize(runtime,
                               chain(at::ones({1}), at::ones({1})),
                               plain(1.0, 2),
                               {{.names = {"first.w"}, .frozen = true}});
    engine.set_parameter("first.w", at::full({1}, 4.0));
    EXPECT_EQ(engine.parameter("first.w").item<double>(), 4.0);
    engine.backward(engine.forward(batch_of({1})));
    EXPECT_EQ(engine.gradient("second.w").item<double>(), 4.0);
    EXPECT_TRUE(contains(error_of([&] { (void)engine.gradient("first.w"); }), "is frozen"));
  });
}

// The number that Adam corrects its moments by is the number of updates.
TEST(Access, AdamCountsUpdates) {
  on_ranks(2, [](const Runtime& runtime) {
    Config config;
    config.set("train_micro_batch_size_per_gpu", 1)
        .set("gradient_accumulation_steps", 2)
        .set("learning_rate", 1e-3)
        .set("zero_stage", 1)
        .set("gradient_clipping", 0.0);
    Engine engine = initialize(runtime, slope(at::zeros({1})), config);
    for (int micro_batch = 0; micro_batch < 6; ++micro_batch) {
      (void)micro_step(engine, batch_of({1}));
    }
    EXPECT_EQ(engine.num_updates(), 3);
    // A gradient that is always 1 moves by the rate each time, corrections and all.
    EXPECT_NEAR(engine.parameter("w").item<double>(), -3e-3, 1e-8);
    EXPECT_NEAR(engine.moment("w", 0).item<double>(), 1 - 0.9 * 0.9 * 0.9, 1e-6);
  });
}

TEST(Evaluation, IsWeightedByTermsOverAllRanks) {
  for (const int ranks : {1, 2}) {
    on_ranks(ranks, [&](const Runtime& runtime) {
      Model model = slope(at::ones({2}));
      model.loss = [](const at::Tensor& output, const Batch& batch) {
        return Loss{output, batch.rows};
      };
      Engine engine = initialize(runtime, std::move(model), plain(1.0, ranks == 1 ? 0 : 3));
      // Two rows of loss 1 and one of 4, on one rank or on two.
      Batch two = batch_of({1, 1});
      two.rows = 2;
      const Batch one = batch_of({2, 2});
      StepLoss total = engine.evaluate(runtime.rank() == 0 ? two : one);
      total = engine.sum_over_ranks(total);
      if (ranks == 2) {
        EXPECT_EQ(total.weight(), 3);
        EXPECT_EQ(total.mean(), 2.0);
      } else {
        EXPECT_EQ(total.mean(), 1.0);
        EXPECT_EQ(engine.evaluate(one).mean(), 4.0);
      }
      EXPECT_EQ(engine.num_updates(), 0);
    });
  }
}

// Before, inside and after windows, under every stage: training goes on as without it.
TEST(Evaluation, MayComeBetweenAnyTwoMicroBatches) {
  for (int stage = 0; stage <= 3; ++stage) {
    on_ranks(2, [&](const Runtime& runtime) {
      const auto trained = [&](bool evaluates) {
        Engine engine = initialize(
            runtime, chain(at::full({3}, 2.0F), at::full({3}, 5.0F)), plain(0.01, stage, 2));
        const auto look = [&] {
          if (evaluates) {
            EXPECT_GT(engine.evaluate(batch_of({1, 1, 1})).mean(), 0.0);
          }
        };
        for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
          look();
          engine.backward(engine.forward(batch_of({1, 2, 3})));
          look();
          (void)engine.step();
        }
        return engine.parameter("first.w");
      };
      EXPECT_TRUE(at::equal(trained(true), trained(false))) << "stage " << stage;
    });
  }
}

TEST(Evaluation, InferGivesTheLastUnitsOutput) {
  on_ranks(2, [](const Runtime& runtime) {
    Engine engine =
        initialize(runtime, chain(at::full({2}, 2.0F), at::full({2}, 3.0F)), plain(1.0, 3));
    // Rank 1 has nothing to compute and takes part.
    const at::Tensor output = engine.infer(runtime.rank() == 0 ? batch_of({1, 2}) : Batch{});
    EXPECT_EQ(output.defined(), runtime.rank() == 0);
    if (output.defined()) {
      EXPECT_TRUE(at::equal(output, at::tensor({6.0F, 12.0F})));
    }
  });
}

TEST(Engines, SeveralShareTheRanks) {
  on_ranks(2, [](const Runtime& runtime) {
    Engine one = initialize(runtime, slope(at::zeros({1})), plain(1.0, 2));
    Engine two = initialize(runtime, slope(at::zeros({1})), plain(2.0, 3));
    const StepLoss loss = one.forward(batch_of({1}));
    (void)micro_step(two, batch_of({1}));
    one.backward(loss);
    (void)one.step();
    EXPECT_EQ(one.parameter("w").item<double>(), -1.0);
    EXPECT_EQ(two.parameter("w").item<double>(), -2.0);
  });
}

}  // namespace
}  // namespace zeroth::testing
