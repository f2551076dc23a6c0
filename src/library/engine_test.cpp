#include "library/test_support.h"

namespace zeroth::testing {
namespace {

double weight(const Engine& engine) {
  return engine.parameter("w")[0].item<double>();
}

// N06: a gradient of 1 in each of four micro-batches is a gradient of 1.
TEST(Numbers, AccumulationIsAMean) {
  for (const int accumulation : {1, 4}) {
    on_ranks(1, [&](const Runtime& runtime) {
      Engine engine = initialize(runtime, slope(at::zeros({1})), plain(1.0, 0, accumulation));
      StepReport report;
      for (int micro_batch = 0; micro_batch < accumulation; ++micro_batch) {
        EXPECT_FALSE(report.window_finished);
        report = micro_step(engine, batch_of({1}));
      }
      EXPECT_TRUE(report.updated);
      EXPECT_EQ(report.grad_norm, 1.0);
      EXPECT_EQ(weight(engine), -1.0);
      EXPECT_EQ(engine.num_updates(), 1);
    });
  }
}

// N16: gradients 1 then 3 are a mean of 2 under every stage.
TEST(Numbers, NoStageForgetsAMicroBatch) {
  for (int stage = 0; stage <= 3; ++stage) {
    on_ranks(2, [&](const Runtime& runtime) {
      Engine engine = initialize(runtime, slope(at::zeros({1})), plain(1.0, stage, 2));
      (void)micro_step(engine, batch_of({1}));
      const StepReport report = micro_step(engine, batch_of({3}));
      EXPECT_EQ(report.grad_norm, 2.0);
      EXPECT_EQ(weight(engine), -2.0) << "stage " << stage;
    });
  }
}

// N25: (3, 0) and (0, 4) with clipping 1 apply (0.6, 0.8).
TEST(Numbers, ClippingIsOfTheWindow) {
  on_ranks(1, [](const Runtime& runtime) {
    Config config;
    config.set("train_micro_batch_size_per_gpu", 1)
        .set("gradient_accumulation_steps", 2)
        .set("optimizer.type", "SGD")
        .set("learning_rate", 1.0)
        .set("gradient_clipping", 1.0);
    Engine engine = initialize(runtime, slope(at::zeros({2})), config);
    (void)micro_step(engine, batch_of({3, 0}));
    const StepReport report = micro_step(engine, batch_of({0, 4}));
    EXPECT_EQ(report.grad_norm, 2.5);
    EXPECT_EQ(engine.global_grad_norm(), 2.5);
    EXPECT_NEAR(engine.parameter("w")[0].item<double>(), -0.6, 1e-6);
    EXPECT_NEAR(engine.parameter("w")[1].item<double>(), -0.8, 1e-6);
  });
}

// Rank 1 has three times as many terms as rank 0: the mean is over all of them.
TEST(Numbers, LossesAreWeightedByTheirTerms) {
  for (int stage = 0; stage <= 3; ++stage) {
    on_ranks(2, [&](const Runtime& runtime) {
      const at::Tensor w = at::zeros({1});
      Model model = slope(w);
      const std::int64_t terms = runtime.rank() == 0 ? 1 : 3;
      model.loss = [terms](const at::Tensor& output, const Batch&) {
        return Loss{output * terms, terms};
      };
      Engine engine = initialize(runtime, std::move(model), plain(1.0, stage));
      const StepReport report = micro_step(engine, batch_of({runtime.rank() == 0 ? 1.0 : 5.0}));
      EXPECT_EQ(report.loss_weight, 4);
      EXPECT_EQ(report.grad_norm, 4.0);
      EXPECT_EQ(weight(engine), -4.0);
    });
  }
}

TEST(Numbers, Bf16KeepsAMasterInFp32) {
  on_ranks(2, [](const Runtime& runtime) {
    Config config = plain(0x1p-10, 2);
    config.set("bf16.enabled", true);
    Engine engine = initialize(runtime, slope(at::ones({1})), config);
    EXPECT_EQ(engine.dtype(), at::kBFloat16);
    (void)micro_step(engine, batch_of({1}));
    EXPECT_EQ(weight(engine), 1 - 0x1p-10);
  });
}

TEST(Start, RankZerosValuesGoToAll) {
  for (const int stage : {0, 3}) {
    on_ranks(3, [&](const Runtime& runtime) {
      Engine engine = initialize(runtime,
                                 slope(at::full({2}, 1.0 + static_cast<double>(runtime.rank()))),
                                 plain(1.0, stage));
      EXPECT_EQ(weight(engine), 1.0);
      (void)micro_step(engine, batch_of({1, 1}));
      EXPECT_EQ(weight(engine), 0.0);
    });
  }
}

TEST(Start, ThePrintedTableNamesSourcesAndTheModel) {
  on_ranks(2, [](const Runtime& runtime) {
    const Engine engine = initialize(runtime, slope(at::zeros({3})), plain(0.5, 2, 4));
    const std::string table = engine.start_table();
    EXPECT_TRUE(contains(table, "gradient_accumulation_steps 4 (code)")) << table;
    EXPECT_TRUE(contains(table, "global batch 8 = 1 x 4 x 2")) << table;
    EXPECT_TRUE(contains(table, "model: 1 unit, 3 of 3 parameters trainable")) << table;
    EXPECT_TRUE(contains(engine.config(), "\"zero_stage\": 2")) << engine.config();
  });
}

TEST(Start, ErrorsOfTheSettingsComeTogether) {
  const auto errors = errors_on(1, [](const Runtime& runtime) {
    Config config;
    config.set("zero_optimization.stag", 2).set("learning_rate", "fast");
    (void)initialize(runtime, slope(at::zeros({1})), config);
  });
  EXPECT_TRUE(contains(errors[0], "2 things are wrong")) << errors[0];
}

TEST(Start, RanksWithOtherSettingsAreNamed) {
  const auto errors = errors_on(3, [](const Runtime& runtime) {
    const double rate = runtime.rank() == 2 ? 0.5 : 1.0;
    (void)initialize(runtime, slope(at::zeros({1})), plain(rate));
  });
  for (const std::string& error : errors) {
    EXPECT_TRUE(contains(error, "the settings of rank 2 are not those of rank 0")) << error;
  }
}

TEST(Start, RanksWithOtherModelsAreTold) {
  const auto errors = errors_on(2, [](const Runtime& runtime) {
    (void)initialize(runtime, slope(at::zeros({runtime.rank() == 0 ? 1 : 2})), plain(1.0));
  });
  EXPECT_TRUE(contains(errors[0], "first value of w")) << errors[0];
}

TEST(Start, ARankWhoseSettingsAreWrongEndsTheOthers) {
  const auto errors = errors_on(2, [](const Runtime& runtime) {
    Config config = plain(1.0);
    if (runtime.rank() == 1) {
      config.set("learning_rate", "fast");
    }
    (void)initialize(runtime, slope(at::zeros({1})), config);
  });
  EXPECT_TRUE(contains(errors[0], "takes a number")) << errors[0];
}

// Programs read their tensors between steps and after training.
TEST(Storage, TheProgramsTensorSeesUpdatesAndOutlivesTheEngine) {
  for (int stage = 0; stage <= 2; ++stage) {
    on_ranks(2, [&](const Runtime& runtime) {
      const at::Tensor w = at::zeros({3});
      {
        Engine engine = initialize(runtime, slope(w), plain(1.0, stage));
        (void)micro_step(engine, batch_of({1, 2, 3}));
        EXPECT_TRUE(at::equal(w.detach(), at::tensor({-1.0F, -2.0F, -3.0F}))) << stage;
        engine.set_parameter("w", at::full({3}, 7.0));
        EXPECT_TRUE(at::equal(w.detach(), at::full({3}, 7.0F)));
      }
      EXPECT_TRUE(at::equal(w.detach(), at::full({3}, 7.0F)));
    });
  }
}

TEST(Storage, AfterStageThreeTheTensorIsEmptyNotDangling) {
  on_ranks(2, [](const Runtime& runtime) {
    const at::Tensor w = at::zeros({3});
    { const Engine engine = initialize(runtime, slope(w), plain(1.0, 3)); }
    EXPECT_EQ(w.numel(), 0);
  });
}

}  // namespace
}  // namespace zeroth::testing
