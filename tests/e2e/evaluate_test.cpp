#include "e2e/support.h"

namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

Words on_model(const std::string& command, const Words& more) {
  return joined({command, "--model_name_or_path", "model"}, more);
}

// N09: how evaluation is cut into batches does not show in its loss.
TEST_F(EndToEnd, EvaluationDoesNotDependOnItsBatch) {
  std::vector<Json> results;
  for (const char* rows : {"1", "2", "3"}) {
    results.push_back(json_of(
        on_model("eval", {"--dataset", "rows.json", "--per_device_eval_batch_size", rows})));
  }
  for (const Json& result : results) {
    EXPECT_NEAR(result.at("loss").get<double>() / results[0].at("loss").get<double>(), 1, 1e-6);
    EXPECT_EQ(result.at("target_tokens"), results[0].at("target_tokens"));
    EXPECT_EQ(result.at("rows"), 24);
  }
}

TEST_F(EndToEnd, EvalFindsTheRowsThatTrainSetAside) {
  const Words split{"--val_size", "5", "--seed", "3"};
  const Json trained = json_of(train("out", split));
  const Json evaluated = json_of(
      on_model("eval", joined({"--dataset", "rows.json", "--adapter_name_or_path", "out"}, split)));
  EXPECT_EQ(evaluated.at("rows"), 5);
  EXPECT_NEAR(evaluated.at("loss").get<double>(), trained.at("eval_loss").get<double>(), 1e-9);
}

TEST_F(EndToEnd, AValidationFileIsEvaluatedWhenAsked) {
  (void)good(train("out",
                   {"--eval_dataset",
                    "rows.json",
                    "--eval_strategy",
                    "steps",
                    "--eval_steps",
                    "2",
                    "--max_steps",
                    "3"}));
  const auto records = records_of(path("out"), "evaluation");
  ASSERT_EQ(records.size(), 2U);  // after update 2, and at the end
  EXPECT_EQ(records[0].at("step"), 2);
  EXPECT_EQ(records[1].at("step"), 3);
  EXPECT_EQ(records[1].at("rows"), 24);
}

TEST_F(EndToEnd, ATrainedAdapterChangesAnswersAndAFreshOneDoesNot) {
  const Words predict = on_model(
      "predict",
      {"--dataset", "rows.json", "--max_new_tokens", "5", "--max_samples", "6", "--output_dir"});
  const Json summary = json_of(joined(predict, {"base"}));
  EXPECT_EQ(summary.at("rows"), 6);
  const auto base = lines_of(path("base/generated_predictions.jsonl"));
  ASSERT_EQ(base.size(), 6U);
  EXPECT_EQ(base[1].at("label"), "word 7 and so on");
  for (const char* field : {"prompt", "predict", "label"}) {
    EXPECT_TRUE(base[0].contains(field)) << field;
  }
  (void)good(train("fresh", {"--learning_rate", "0", "--max_steps", "1"}));
  (void)good(joined(predict, {"with-fresh", "--adapter_name_or_path", "fresh"}));
  EXPECT_EQ(content_of(path("base/generated_predictions.jsonl")),
            content_of(path("with-fresh/generated_predictions.jsonl")));
  (void)good(train("trained", {"--learning_rate", "3e-2", "--max_steps", "12"}));
  (void)good(joined(predict, {"with-trained", "--adapter_name_or_path", "trained"}));
  EXPECT_NE(content_of(path("base/generated_predictions.jsonl")),
            content_of(path("with-trained/generated_predictions.jsonl")));
}

TEST_F(EndToEnd, AnswersThatAreCutShortAreCounted) {
  const testing::Outcome outcome = good(
      on_model("predict", {"--dataset", "rows.json", "--max_samples", "2", "--output_dir", "out"}));
  EXPECT_NE(outcome.errors.find("at the end of the model's 96 positions"), std::string::npos)
      << outcome.errors;
}

TEST_F(EndToEnd, ARandomModelDependsOnItsSeedAlone) {
  for (const Words& one : {Words{"a", "1"}, Words{"b", "1"}}) {
    (void)good({"init-model",
                "--model_config",
                "model/config.json",
                "--output_dir",
                one[0],
                "--seed",
                one[1]});
  }
  EXPECT_EQ(content_of(path("a/model.safetensors")), content_of(path("b/model.safetensors")));
}

TEST_F(EndToEnd, AShortVocabularyIsSaid) {
  write("small.txt", "ab ab ab");
  const testing::Outcome outcome =
      good({"train-tokenizer", "small.txt", "--vocab_size", "400", "--output_dir", "tokens"});
  EXPECT_NE(outcome.errors.find("of the 400 tokens asked for"), std::string::npos)
      << outcome.errors;
}

}  // namespace
}  // namespace zeroth::e2e
