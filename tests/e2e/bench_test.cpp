#include <numeric>

#include "e2e/support.h"

// `zeroth bench`: whatever it measures adds up, on every kind of update.
namespace zeroth::e2e {
namespace {

class Bench : public EndToEnd {
 protected:
  [[nodiscard]] Json measured(const Words& more) const {
    return json_of(joined(
        {"bench", "--rows", "2", "--tokens", "24", "--bench_updates", "3", "--bench_warmup", "1"},
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
