#include <cmath>
#include <filesystem>

#include "e2e/ranks.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

// The engine's settings through the product, with real processes: those that only cost memory or
// time change no bit, number types and optimizers do what they say, and a run that fp16 cannot hold
// ends with a message.
namespace zeroth::e2e {
namespace {

class EngineSettings : public RankTest {
 protected:
  [[nodiscard]] static Words on_two_ranks(int stage, const Words& more) {
    return train(
        "out",
        joined(joined(cut(2, 2, 2, stage), {"--finetuning_type", "full", "--overwrite_output_dir"}),
               more));
  }

  [[nodiscard]] Tensors weights_with(int stage, const Words& more) const {
    (void)good(on_two_ranks(stage, more));
    return tensors_of(path("out/model.safetensors"));
  }

  [[nodiscard]] std::string types_of(const std::string& file) const {
    const std::string content = content_of(path(file));
    std::string types;
    for (const char* type : {"\"F32\"", "\"BF16\"", "\"F16\""}) {
      types += content.find(type) != std::string::npos ? type : "";
    }
    return types;
  }
};

TEST_F(EngineSettings, MemoryAndTimeCostNoBit) {
  const std::vector<Words> everywhere{{"--zero_optimization.overlap_comm=false"},
                                      {"--zero_optimization.reduce_bucket_size=3000"},
                                      {"--gradient_checkpointing=true"},
                                      {"--zero_optimization.sub_group_size=1000"}};
  const std::vector<Words> in_stage_3{
      {"--zero_optimization.stage3_prefetch_bucket_size=0"},
      {"--zero_optimization.stage3_prefetch_bucket_size=20000"},
      {"--zero_optimization.stage3_max_live_parameters=1"},
      {"--zero_optimization.stage3_param_persistence_threshold=9000"}};
  for (const int stage : {1, 3}) {
    const Tensors plain = weights_with(stage, {});
    for (const Words& more : everywhere) {
      EXPECT_EQ(weights_with(stage, more), plain) << "stage " << stage << " " << more[0];
    }
    for (const Words& more : stage == 3 ? in_stage_3 : std::vector<Words>{}) {
      EXPECT_EQ(weights_with(stage, more), plain) << more[0];
    }
  }
}

TEST_F(EngineSettings, AllStagesAgreeWhenEveryMicroStepIsReduced) {
  const Words every{"--zero_optimization.reduce_every_micro_step=true"};
  const Tensors zero = weights_with(0, every);
  for (const int stage : {1, 2, 3}) {
    EXPECT_EQ(weights_with(stage, every), zero) << "stage " << stage;
  }
}

TEST_F(EngineSettings, Fp16TrainsWithALossScaleThatIsRecorded) {
  (void)good(on_two_ranks(
      2,
      {"--fp16", "--fp16.initial_scale_power=6", "--max_steps", "4", "--learning_rate", "1e-2"}));
  EXPECT_EQ(types_of("out/model.safetensors"), "\"F16\"");
  const auto updates = records_of(path("out"), "update");
  ASSERT_EQ(updates.size(), 4U);
  for (const Json& update : updates) {
    EXPECT_EQ(update.at("loss_scale"), 64);
    EXPECT_EQ(update.at("updated"), true);
  }
  EXPECT_LT(updates.back().at("loss").get<double>(), updates.front().at("loss").get<double>());
}

TEST_F(EngineSettings, N28AScaleAtItsMinimumEndsTheRun) {
  refused(on_two_ranks(2,
                       {"--fp16",
                        "--fp16.initial_scale_power=100",
                        "--fp16.min_loss_scale=1e30",
                        "--fp16.hysteresis=1"}),
          3,
          {"loss scale at minimum", "inf or NaN in", "bf16"});
}

TEST_F(EngineSettings, ManySkippedAttemptsEndTheRun) {
  refused(
      on_two_ranks(
          3,
          {"--fp16", "--fp16.loss_scale=1e30", "--max_skipped_updates", "4", "--max_steps", "9"}),
      3,
      {"4 attempts in a row made no update", "inf or NaN in", "the loss scale stays at"});
}

TEST_F(EngineSettings, GatherOnSaveChoosesTheResultsType) {
  const std::string key = "--zero_optimization.stage3_gather_16bit_weights_on_model_save=";
  (void)good(on_two_ranks(3, {"--bf16", key + "true"}));
  EXPECT_EQ(types_of("out/model.safetensors"), "\"BF16\"");
  (void)good(on_two_ranks(3, {"--bf16", key + "false"}));
  EXPECT_EQ(types_of("out/model.safetensors"), "\"F32\"");
}

// All of them, in all stages, are compared in one process (parity); here those with state or sums
// of their own.
TEST_F(EngineSettings, OptimizersGiveTheSameBitsInBothStagesOfAPair) {
  for (const std::string optim : {"lion_32bit", "adagrad", "lamb"}) {
    const Words more{"--optim", optim, "--max_steps", "2"};
    EXPECT_EQ(weights_with(3, more), weights_with(2, more)) << optim;
  }
}

// What was counted is what was planned, and what the process took, but for a constant. The model is
// large enough not to be lost in the program's own memory.
TEST_F(EngineSettings, TheMemoryThatWasCountedIsThePlansAndTheProcesses) {
  make_large_model();
  const Words common{"--model_name_or_path",
                     "large",
                     "--max_steps",
                     "1",
                     "--overwrite_output_dir",
                     "--format",
                     "json"};
  for (const Words& more : {joined(cut(2, 4, 1, 3), {"--finetuning_type", "full"}),
                            joined(cut(2, 4, 1, 1), {"--finetuning_type", "full", "--bf16"}),
                            joined(cut(2, 4, 1, 2), {"--finetuning_type", "lora"})}) {
    // The kernel may give a process more than it asked for (huge pages), most on a busy machine:
    // what is really held is held in every run, so the nearest of a few decides.
    constexpr int kRuns = 3;
    const auto is_near = [](double process, double counted) {
      return std::abs(process - counted) <= 0.05 * counted + 16e6;
    };
    double process = 0;
    double counted = 0;
    for (int run = 0; run == 0 || (run < kRuns && !is_near(process, counted)); ++run) {
      const testing::Outcome outcome = good(train("out", joined(common, more)));
      const Json memory = Json::parse(outcome.output).at("memory");
      const auto bytes = [&](const char* name) { return memory.at(name).get<double>(); };
      counted = bytes("counted_bytes");
      process = bytes("process_bytes") - bytes("process_bytes_before_the_model");
      EXPECT_NEAR(counted, bytes("planned_bytes"), 0.1 * counted)
          << fmt::format("{}", fmt::join(more, " "));
      EXPECT_NE(outcome.errors.find("memory of rank 0 at the most"), std::string::npos);
    }
    EXPECT_NEAR(process, counted, 0.05 * counted + 16e6) << fmt::format("{}", fmt::join(more, " "));
  }
}

}  // namespace
}  // namespace zeroth::e2e
