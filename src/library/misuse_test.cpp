#include <filesystem>

#include "library/test_support.h"

// What people get wrong with training engines: refused on every rank, with what to do instead.
namespace zeroth::testing {
namespace {

// Rank 0's error of a run on two ranks in which all do the same; every rank must have one.
std::string refused(const std::function<void(Engine&)>& mistake,
                    const Config& config = plain(1.0, 2, 2)) {
  const auto errors = errors_on(2, [&](const Runtime& runtime) {
    Engine engine = initialize(runtime, slope(at::zeros({1})), config);
    mistake(engine);
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error, "");
  }
  return errors[0];
}

TEST(Order, TwoBackwardsWithoutAStep) {
  const std::string error = refused([](Engine& engine) {
    const StepLoss loss = engine.forward(batch_of({1}));
    engine.backward(loss);
    engine.backward(loss);
  });
  EXPECT_TRUE(contains(error, "backward() twice without step()")) << error;
}

// A loop that counts by itself and calls step() once for four micro-batches.
void count_to_four(Engine& engine) {
  for (int micro_batch = 0; micro_batch < 4; ++micro_batch) {
    engine.backward(engine.forward(batch_of({1})));
  }
  (void)engine.step();
}

TEST(Order, N49_OneStepForAWholeWindow) {
  const std::string error = refused(count_to_four);
  EXPECT_TRUE(contains(error, "forward() after backward() without step()")) << error;
  EXPECT_TRUE(contains(error, "gradient_accumulation_steps 2 (code)")) << error;
  EXPECT_TRUE(contains(error, "updates at the boundary by itself")) << error;
}

Config on_file(int stage, int accumulation) {
  const std::string folder = std::filesystem::temp_directory_path().string();
  Config config = plain(1.0, stage, accumulation);
  config.set("zero_optimization.offload_optimizer.device", "nvme")
      .set("zero_optimization.offload_optimizer.nvme_path", folder)
      .set("aio.backend", "threads");
  return config;
}

// Nor does an offloaded optimizer count by itself.
TEST(Order, N49_OneStepForAWholeWindowWithStateOnFile) {
  for (int stage = 0; stage <= 3; ++stage) {
    const std::string error = refused(count_to_four, on_file(stage, 1));
    EXPECT_TRUE(contains(error, "forward() after backward() without step()")) << error;
    EXPECT_TRUE(contains(error, "gradient_accumulation_steps 1 (code)")) << error;
    EXPECT_TRUE(contains(error, "updates at the boundary by itself")) << error;
  }
}

TEST(Order, N49_StateOnFileIsUpdatedOnceInFourMicroBatches) {
  for (int stage = 0; stage <= 3; ++stage) {
    on_ranks(2, [&](const Runtime& runtime) {
      Engine engine = initialize(runtime, slope(at::zeros({1})), on_file(stage, 4));
      for (int micro_batch = 1; micro_batch <= 8; ++micro_batch) {
        const StepReport report = micro_step(engine, batch_of({static_cast<double>(micro_batch)}));
        EXPECT_EQ(report.updated, micro_batch % 4 == 0);
        const double expected = micro_batch < 4 ? 0 : micro_batch < 8 ? -2.5 : -2.5 - 6.5;
        EXPECT_EQ(engine.parameter("w")[0].item<double>(), expected);
      }
    });
  }
}

TEST(Order, StepWithoutBackward) {
  EXPECT_TRUE(contains(refused([](Engine& engine) { (void)engine.step(); }),
                       "step() without forward() and backward()"));
  EXPECT_TRUE(contains(refused([](Engine& engine) {
                         (void)engine.forward(batch_of({1}));
                         (void)engine.step();
                       }),
                       "step() between forward() and backward()"));
}

TEST(Order, TwoForwards) {
  const std::string error = refused([](Engine& engine) {
    (void)engine.forward(batch_of({1}));
    (void)engine.forward(batch_of({1}));
  });
  EXPECT_TRUE(contains(error, "call evaluate()")) << error;
}

TEST(Order, ALossThatForwardDidNotGive) {
  const std::string old = refused([](Engine& engine) {
    const StepLoss first = engine.forward(batch_of({1}));
    engine.backward(first);
    (void)engine.step();
    (void)engine.forward(batch_of({1}));
    engine.backward(first);
  });
  EXPECT_TRUE(contains(old, "Nothing is to be divided")) << old;
  EXPECT_TRUE(contains(refused([](Engine& engine) {
                         (void)engine.forward(batch_of({1}));
                         engine.backward(StepLoss());
                       }),
                       "did not give"));
}

TEST(Order, EvaluationInsideAMicroStep) {
  EXPECT_TRUE(contains(refused([](Engine& engine) {
                         (void)engine.forward(batch_of({1}));
                         (void)engine.evaluate(batch_of({1}));
                       }),
                       "evaluate() between"));
}

// One rank's mistake ends the others' waits, with its reason.
TEST(Order, AMistakeOnOneRankEndsAll) {
  const auto errors = errors_on(2, [](const Runtime& runtime) {
    Engine engine = initialize(runtime, slope(at::zeros({1})), plain(1.0, 2));
    if (runtime.rank() == 1) {
      (void)engine.step();
    }
    (void)micro_step(engine, batch_of({1}));
  });
  EXPECT_TRUE(contains(errors[0], "step() without forward()")) << errors[0];
  EXPECT_TRUE(contains(errors[1], "step() without forward()")) << errors[1];
}

TEST(Order, AnEngineThatFailedStaysAtItsEnd) {
  (void)errors_on(1, [](const Runtime& runtime) {
    Engine engine = initialize(runtime, slope(at::zeros({1})), plain(1.0));
    EXPECT_NE(error_of([&] { (void)engine.step(); }), "");
    const std::string error = error_of([&] { (void)engine.forward(batch_of({1})); });
    EXPECT_TRUE(contains(error, "at its end, because of an earlier error: step()")) << error;
  });
}

// The story: the file alone, four ranks, and a loader that gives one row.
TEST(Rows, TheLoaderGivesAnotherNumberThanTheOneInForce) {
  const auto errors = errors_on(4, [](const Runtime& runtime) {
    const Config config =
        Config::from_json(R"({"train_batch_size": 32, "gradient_accumulation_steps": 1})");
    Engine engine = initialize(runtime, slope(at::zeros({1})), config);
    (void)engine.forward(batch_of({1}));
  });
  for (const std::string& error : errors) {
    EXPECT_TRUE(contains(error, "the loader gave 1 row on rank")) << error;
  }
  const std::string& error = errors[0];
  EXPECT_TRUE(contains(error, "the micro-batch in force is 8 rows")) << error;
  EXPECT_TRUE(contains(error, "train_batch_size 32 (JSON text:1)")) << error;
  EXPECT_TRUE(contains(error, "(derived: 32 / (1 x 4))")) << error;
  EXPECT_TRUE(contains(error, "1 x 1 x 4 = 4 rows, not 32 rows")) << error;
  EXPECT_TRUE(contains(error, "gradient_accumulation_steps 8, which make 32 rows")) << error;
}

TEST(Rows, OnlyAnEpochsLastMicroBatchMayBeSmaller) {
  on_ranks(1, [](const Runtime& runtime) {
    Config config = plain(1.0);
    config = Config().set("train_micro_batch_size_per_gpu", 4);
    Engine engine = initialize(runtime, slope(at::zeros({1})), config);
    Batch batch{.tensors = {at::ones({3, 1})}, .last_of_epoch = true};
    EXPECT_TRUE(micro_step(engine, batch).updated);
    batch.last_of_epoch = false;
    EXPECT_TRUE(contains(error_of([&] { (void)engine.forward(batch); }), "gave 3 rows"));
  });
}

TEST(Rows, MoreThanTheMicroBatchIsNeverRight) {
  const std::string error = refused([](Engine& engine) {
    (void)engine.forward({.tensors = {at::ones({2})}, .last_of_epoch = true});
  });
  EXPECT_TRUE(contains(error, "gave 2 rows")) << error;
}

TEST(Rows, ABatchMustTellItsRows) {
  const std::string error =
      refused([](Engine& engine) { (void)engine.forward({.tensors = {at::ones({})}}); });
  EXPECT_TRUE(contains(error, "set Batch::rows")) << error;
}

TEST(Window, MayOnlyBeShorterAndBeforeItBegins) {
  on_ranks(2, [](const Runtime& runtime) {
    Engine engine = initialize(runtime, slope(at::zeros({1})), plain(1.0, 1, 3));
    engine.set_window(2);
    EXPECT_FALSE(engine.is_gradient_accumulation_boundary());
    (void)micro_step(engine, batch_of({1}));
    EXPECT_TRUE(engine.is_gradient_accumulation_boundary());
    EXPECT_TRUE(micro_step(engine, batch_of({3})).updated);
    EXPECT_EQ(engine.parameter("w")[0].item<double>(), -2.0);
    EXPECT_FALSE(micro_step(engine, batch_of({1})).window_finished);
  });
  EXPECT_TRUE(
      contains(refused([](Engine& engine) { engine.set_window(3); }), "It may only be shorter"));
  EXPECT_TRUE(contains(refused([](Engine& engine) {
                         (void)micro_step(engine, batch_of({1}));
                         engine.set_window(1);
                       }),
                       "inside a window"));
}

TEST(Window, TrainBatchTakesAWholeOne) {
  on_ranks(2, [](const Runtime& runtime) {
    Engine engine = initialize(runtime, slope(at::zeros({1})), plain(1.0, 2, 3));
    const std::vector<Batch> window{batch_of({1}), batch_of({2}), batch_of({3})};
    const StepReport report = engine.train_batch(window);
    EXPECT_TRUE(report.updated);
    EXPECT_EQ(report.grad_norm, 2.0);

    // From where they come: a full window, then the rest of the epoch, then nothing.
    int left = 4;
    const auto next = [&]() -> std::optional<Batch> {
      return left-- > 0 ? std::optional(batch_of({1})) : std::nullopt;
    };
    EXPECT_EQ(engine.train_batch(next).step, 2);
    EXPECT_EQ(engine.train_batch(next).step, 3);
    EXPECT_FALSE(engine.train_batch(next).window_finished);
  });
  EXPECT_TRUE(contains(refused([](Engine& engine) {
                         const std::vector<Batch> one{batch_of({1})};
                         (void)engine.train_batch(one);
                       }),
                       "train_batch() with 1 micro-batches"));
}

TEST(Ranks, ARankWithoutRowsTakesPart) {
  for (int stage = 0; stage <= 3; ++stage) {
    on_ranks(2, [&](const Runtime& runtime) {
      Engine engine = initialize(runtime, slope(at::zeros({1})), plain(1.0, stage));
      Batch batch = batch_of({5});
      batch.last_of_epoch = true;
      const StepReport report =
          micro_step(engine, runtime.rank() == 0 ? batch : Batch{.last_of_epoch = true});
      EXPECT_EQ(report.grad_norm, 5.0);
      EXPECT_EQ(report.loss_weight, 1);
    });
  }
}

TEST(TheLoss, MustHaveAGradient) {
  const auto errors = errors_on(2, [](const Runtime& runtime) {
    Model model = slope(at::zeros({1}));
    model.loss = [](const at::Tensor& output, const Batch&) { return Loss{output.detach()}; };
    Engine engine = initialize(runtime, std::move(model), plain(1.0));
    (void)engine.forward(batch_of({1}));
  });
  EXPECT_TRUE(contains(errors[0], "has no gradient")) << errors[0];
}

TEST(TheLoss, MustBeOneNumberWithAWeight) {
  const auto error_with = [](Loss loss) {
    return errors_on(1, [&](const Runtime& runtime) {
      Model model = slope(at::zeros({1}));
      model.loss = [&](const at::Tensor&, const Batch&) { return loss; };
      Engine engine = initialize(runtime, std::move(model), plain(1.0));
      (void)engine.forward(batch_of({1}));
    })[0];
  };
  EXPECT_TRUE(contains(error_with({at::zeros({2})}), "the loss has 2 numbers"));
  EXPECT_TRUE(contains(error_with({at::Tensor()}), "the loss has nothing"));
  EXPECT_TRUE(contains(error_with({at::zeros({}), -1}), "the loss has weight -1"));
}

TEST(TheLoss, WithoutTermsUpdatesNothing) {
  on_ranks(2, [](const Runtime& runtime) {
    Model model = slope(at::zeros({1}));
    model.loss = [](const at::Tensor& output, const Batch&) { return Loss{output * 0, 0}; };
    Engine engine = initialize(runtime, std::move(model), plain(1.0, 2));
    const StepReport report = micro_step(engine, batch_of({1}));
    EXPECT_TRUE(report.window_finished);
    EXPECT_FALSE(report.updated);
    EXPECT_TRUE(contains(report.skipped, "weight 0")) << report.skipped;
  });
}

TEST(TheProgram, SaysWhereItsOwnCodeFailed) {
  const auto errors = errors_on(2, [](const Runtime& runtime) {
    Model model = slope(at::zeros({1}));
    model.units[0].forward = [](const at::Tensor&, const Pass& pass) {
      return at::matmul(pass.batch.tensors[0].view({1, 1}), at::ones({2, 2}));
    };
    Engine engine = initialize(runtime, std::move(model), plain(1.0));
    (void)engine.forward(batch_of({1}));
  });
  EXPECT_TRUE(contains(errors[0], "unit slope: mat1 and mat2 shapes cannot be multiplied"))
      << errors[0];
}

}  // namespace
}  // namespace zeroth::testing
