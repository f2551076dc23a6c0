#include <numeric>

#include "e2e/support.h"

// `zeroth bench`: whatever it measures adds up, on every kind of update.
namespace zeroth::e2e {
namespace {

class Bench : public EndToEnd {
 protected:
  [[nodiscard]] Json measured(const Words& more, const std::string& warmup = "1") const {
    return json_of(joined({"bench",
                           "--rows",
                           "2",
                           "--tokens",
                           "24",
                           "--bench_updates",
                           "3",
                           "--bench_warmup",
                           warmup},
                          more));
  }
};

const Words kShape{"--model_config", "model/config.json"};

void expect_sound(const Json& result) {
  const double seconds = result.at("seconds_per_update").get<double>();
  EXPECT_GT(seconds, 0);
  EXPECT_GT(result.at("tokens_per_second").get<double>(), 0);
  EXPECT_GT(result.at("roofline").get<double>(), 0);
  EXPECT_GT(result.at("roofline_hot").get<double>(), 0);
  EXPECT_GT(result.at("peak_memory_bytes").get<double>(), 0);
  EXPECT_GT(result.at("products_alone_seconds").at("cold").get<double>(), 0);
  const Json& phases = result.at("phases");
  double sum = 0;
  for (const char* phase : {"products", "attention", "collectives", "optimizer", "other"}) {
    EXPECT_GE(phases.at(phase).get<double>(), 0) << phase;
    sum += phases.at(phase).get<double>();
  }
  EXPECT_GT(phases.at("products").get<double>(), 0);
  EXPECT_GT(phases.at("attention").get<double>(), 0);
  EXPECT_GT(phases.at("optimizer").get<double>(), 0);
  const auto range = result.at("seconds_range").get<std::vector<double>>();
  EXPECT_LE(range[0], seconds);
  EXPECT_LE(seconds, range[1]);
  EXPECT_GE(sum, range[0]);  // of the mean update, which lies between the two
}

TEST_F(Bench, MeasuresEveryKindOfUpdate) {
  const std::vector<Words> kinds{
      {"--finetuning_type", "full"},
      {"--lora_rank", "4", "--dtype", "bf16"},
      {"--finetuning_type", "freeze", "--gradient_checkpointing", "true"},
      {"--ranks", "2", "--zero_stage", "3", "--gradient_accumulation_steps", "2"},
      {"--kernels", "reference"}};
  for (const Words& kind : kinds) {
    SCOPED_TRACE(kind.back());
    const Json result = measured(joined(kShape, kind));
    expect_sound(result);
    const double tokens = kind[0] == "--ranks" ? 2 * 2 * 24 * 2 : 2 * 24;
    EXPECT_NEAR(result.at("tokens_per_second").get<double>() *
                    result.at("seconds_per_update").get<double>(),
                tokens,
                1e-6 * tokens);
  }
}

// The fast kernels train and generate what the reference ones do, to rounding.
TEST_F(Bench, TheFastKernelsGiveTheSameNumbers) {
  const std::vector<Words> kinds{
      {"--finetuning_type", "full"},
      {"--lora_dropout", "0.25", "--val_size", "4"},
      {"--ranks", "2", "--zero_stage", "3", "--lora_target", "lm_head,q_proj"}};
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    SCOPED_TRACE(kinds[i].back());
    std::vector<Json> runs;
    for (const std::string kernels : {"reference", "auto"}) {
      const std::string out = kernels + std::to_string(i);
      runs.push_back(
          json_of(train(out, joined(kinds[i], {"--kernels", kernels, "--learning_rate", "1e-2"}))));
    }
    EXPECT_NEAR(runs[0].at("last_loss").get<double>(), runs[1].at("last_loss").get<double>(), 1e-4);
  }
  std::vector<std::string> answers;
  for (const std::string kernels : {"reference", "auto"}) {
    (void)good({"predict",
                "--model_name_or_path",
                "reference0",
                "--dataset",
                "rows.json",
                "--max_new_tokens",
                "8",
                "--kernels",
                kernels,
                "--output_dir",
                "answers_" + kernels});
    answers.push_back(content_of(path("answers_" + kernels + "/generated_predictions.jsonl")));
  }
  EXPECT_EQ(answers[0], answers[1]);
}

// With gradients and weights of 48 MiB each, which the system's allocator would map anew each time.
TEST_F(Bench, AnUpdateTouchesNoNewPages) {
  write("large.json",
        R"({"model_type": "llama", "hidden_size": 192, "intermediate_size": 256,
            "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 65536,
            "max_position_embeddings": 64})");
  for (const std::string type : {"full", "lora"}) {
    const Json result = measured({"--model_config", "large.json", "--finetuning_type", type}, "3");
    EXPECT_LT(result.at("page_faults_per_update").get<double>(), 50) << type;
  }
}

// A processor without bf16 products trains in bf16 all the same, and says how.
TEST_F(Bench, ThePageSaysWhichKernelsAreInUseAndWhy) {
  const auto page = [&](const Words& more) {
    const Words bench{"bench", "--rows", "1", "--tokens", "7", "--bench_updates", "1"};
    return good(joined(joined(bench, kShape), more)).errors;
  };
  EXPECT_NE(page({}).find("kernels: fast ("), std::string::npos);
  const std::string reference = page({"--kernels", "reference"});
  EXPECT_NE(reference.find("kernels: reference"), std::string::npos) << reference;
  ASSERT_EQ(::setenv("ONEDNN_MAX_CPU_ISA", "AVX2", 1), 0);
  const std::string narrow = page({"--dtype", "bf16"});
  ASSERT_EQ(::unsetenv("ONEDNN_MAX_CPU_ISA"), 0);
  EXPECT_NE(narrow.find("bf16 products in fp32, since this processor has none"), std::string::npos)
      << narrow;
}

TEST_F(Bench, TakesAFolderAndARunsOwnConfiguration) {
  expect_sound(measured({"--model_name_or_path", "model"}));
  write("ds.json", R"({"train_micro_batch_size_per_gpu": 3, "zero_optimization": {"stage": 2}})");
  const testing::Outcome outcome = good({"bench",
                                         "--model_name_or_path",
                                         "model",
                                         "--deepspeed",
                                         "ds.json",
                                         "--tokens",
                                         "8",
                                         "--bench_updates",
                                         "1",
                                         "--dataset",
                                         "rows.json"});
  EXPECT_NE(outcome.errors.find("tokens/s"), std::string::npos) << outcome.errors;
  EXPECT_NE(outcome.errors.find("dataset"), std::string::npos)  // without effect, and said
      << outcome.errors;
}

TEST_F(Bench, WhatCannotBeMeasuredIsRefused) {
  refused({"bench"}, 2, {"model_config", "model_name_or_path"});
  refused(joined({"bench", "--model_name_or_path", "model"}, kShape), 2, {"one of"});
  refused({"bench", "--model_config", "nowhere.json"}, 4, {"nowhere.json"});
  refused(joined({"bench", "--rows", "0"}, kShape), 2, {"rows"});
}

}  // namespace
}  // namespace zeroth::e2e
