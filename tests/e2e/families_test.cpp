#include "e2e/checkpoints.h"
#include <fmt/format.h>

// Models of every family through the program.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFamilies{
    "llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text"};

class Families : public Checkpoints {
 protected:
  // The tiny model's sizes as a config of another family, with a window that rows cross.
  void write_config(const std::string& family) const {
    Json config = Json::parse(content_of(path("model/config.json")));
    for (const char* own :
         {"architectures", "hidden_act", "tie_word_embeddings", "sliding_window"}) {
      config.erase(own);
    }
    config["model_type"] = family;
    if (family != "llama" && family != "gemma") {
      config["sliding_window"] = 16;
    }
    write("config.json", config.dump());
  }

  // out/ is a model folder of the same family, and answers the same at every stage.
  void expect_answers_of_the_result(int stage) const {
    fs::copy(path("model/tokenizer.json"), path("out"), fs::copy_options::skip_existing);
    const std::string answers = "answers" + std::to_string(stage);
    (void)good({"predict",
                "--model_name_or_path",
                "out",
                "--dataset",
                "rows.json",
                "--max_new_tokens",
                "4",
                "--max_samples",
                "4",
                "--ranks",
                "2",
                "--zero_stage",
                std::to_string(stage),
                "--output_dir",
                answers});
    const std::string text = content_of(path(answers + "/generated_predictions.jsonl"));
    EXPECT_NE(text, "");
    EXPECT_EQ(text, content_of(path("answers0/generated_predictions.jsonl")));
  }

  // model/ becomes one of `family`, with its tokenizer.
  void make_family(const std::string& family) const {
    write_config(family);
    (void)good({"init-model", "--model_config", "config.json", "--output_dir", "new"});
    fs::copy(path("model/tokenizer.json"), path("new"));
    fs::remove_all(path("model"));
    fs::rename(path("new"), path("model"));
  }
};

TEST_F(Families, EachIsMadePlannedTrainedAndPredictedWith) {
  for (const std::string& family : kFamilies) {
    SCOPED_TRACE(family);
    make_family(family);
    const Json inspected = json_of({"inspect", "model"});
    EXPECT_GT(inspected.size(), 0U);
    const Json plan = json_of({"plan", "--model_config", "model/config.json"});
    EXPECT_GT(plan.size(), 0U);
    (void)good({"check", "--model_name_or_path", "model", "--dataset", "rows.json"});
    const Json trained = json_of(
        train("out",
              {"--ranks", "2", "--zero_stage", "3", "--max_steps", "2", "--overwrite_output_dir"}));
    EXPECT_EQ(trained.at("updates"), 2);
    const Json predicted = json_of({"predict",
                                    "--model_name_or_path",
                                    "model",
                                    "--adapter_name_or_path",
                                    "out",
                                    "--dataset",
                                    "rows.json",
                                    "--max_new_tokens",
                                    "3",
                                    "--max_samples",
                                    "4",
                                    "--overwrite_output_dir",
                                    "--output_dir",
                                    "answers"});
    EXPECT_EQ(predicted.at("rows"), 4);
  }
}

TEST_F(Families, AGemmaGoesOnFromACheckpointAtEveryStage) {
  make_family("gemma3_text");
  for (int stage = 0; stage <= 3; ++stage) {
    const Words kind{"--finetuning_type",
                     "full",
                     "--max_steps",
                     "4",
                     "--save_steps",
                     "2",
                     "--ranks",
                     "2",
                     "--per_device_train_batch_size",
                     "1",
                     "--zero_stage",
                     std::to_string(stage)};
    (void)good(long_run("whole", joined(kind, {"--overwrite_output_dir"})));
    fs::remove_all(path("out"));
    fs::copy(path("whole"), path("out"), fs::copy_options::recursive);
    cut_back_to("out", 2);
    (void)good(long_run("out", joined(kind, {"--resume_from_checkpoint", "latest"})));
    expect_same_run("out", "whole");
    expect_answers_of_the_result(stage);
  }
  const Json evaluated = json_of({"eval", "--model_name_or_path", "out", "--dataset", "rows.json"});
  EXPECT_EQ(evaluated.at("rows"), 24);
}

TEST_F(Families, AFamilyThatIsNotBuiltIsRefusedByNameBeforeAnythingRuns) {
  write_config("mixtral");
  fs::rename(path("config.json"), path("model/config.json"));
  refused(train("out"), 2, {"model_type = \"mixtral\"", "\"gemma3_text\""});
  EXPECT_FALSE(has("out/metrics.jsonl"));
}

TEST_F(Families, DynamicRopeBeyondItsPositionsIsRefused) {
  Json config = Json::parse(content_of(path("model/config.json")));
  config["rope_scaling"] = {{"rope_type", "dynamic"}, {"factor", 2.0}};
  config["max_position_embeddings"] = 16;
  write("model/config.json", config.dump());
  (void)good(train("out"));
  refused(train("longer", {"--cutoff_len", "90"}), 2, {"\"dynamic\"", "Lower --cutoff_len to 16"});
}

}  // namespace
}  // namespace zeroth::e2e
