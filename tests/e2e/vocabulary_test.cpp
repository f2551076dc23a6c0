#include <cmath>
#include <numeric>

#include "e2e/checkpoints.h"
#include <fmt/format.h>

// Tokens that are added: rows of the embedding at the mean, in every file that the run leaves, with
// the tokenizer that knows them.
namespace zeroth::e2e {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kHidden = 32;
constexpr std::size_t kTokens = 272;
constexpr const char* kEmbedding = "model.embed_tokens.weight";

class Vocabulary : public Checkpoints {
 protected:
  void SetUp() override {
    Checkpoints::SetUp();
    make_model("full", {.vocab_size = kTokens});  // a row for each token, and none to spare
    make_model("untied", {.vocab_size = kTokens, .tied = false});
    Json rows = Json::array();
    for (int i = 0; i < 8; ++i) {
      rows.push_back({{"instruction", fmt::format("<call> {}", i)},
                      {"input", ""},
                      {"output", fmt::format("<think>well</think> {}<end>", i)}});
    }
    write("tools.json", rows.dump());
  }

  [[nodiscard]] Json json_in(const std::string& file) const {
    return Json::parse(content_of(path(file)));
  }

  [[nodiscard]] bool knows(const std::string& folder, const std::string& token) const {
    const Json tokenizer = json_in(folder + "/tokenizer.json");
    for (const Json& added : tokenizer.at("added_tokens")) {
      if (added.at("content") == token) {
        return true;
      }
    }
    return false;
  }

  [[nodiscard]] double loss_of(const Words& model) const {
    return json_of(joined({"eval", "--dataset", "tools.json", "--val_size", "4"}, model))
        .at("loss")
        .get<double>();
  }
};

const Words kNew{"--add_tokens", "<call>", "--add_special_tokens", "<think>,</think>"};
const Words kOnFull{"--model_name_or_path", "full", "--dataset", "tools.json"};

Words with_new(const Words& more) {
  return joined(joined(kOnFull, kNew), more);
}

std::vector<float> mean_row(const std::vector<float>& rows) {
  std::vector<double> sums(kHidden);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    sums[i % kHidden] += rows[i];
  }
  std::vector<float> mean;
  for (const double sum : sums) {
    mean.push_back(static_cast<float>(sum / (static_cast<double>(rows.size()) / kHidden)));
  }
  return mean;
}

// The old rows, bit by bit, and `added` times their mean.
void expect_grown(const std::vector<float>& grown, const std::vector<float>& old, int added) {
  std::vector<float> expected = old;
  const std::vector<float> mean = mean_row(old);
  for (int i = 0; i < added; ++i) {
    expected.insert(expected.end(), mean.begin(), mean.end());
  }
  EXPECT_TRUE(grown == expected);  // 9,000 numbers are no message
}

TEST_F(Vocabulary, D17AddedTokensHaveRowsAtEveryStage) {
  for (const std::string model : {"full", "untied"}) {
    const Tensors before = tensors_of(path(model + "/model.safetensors"));
    for (const std::string stage : {"0", "1", "2", "3"}) {
      SCOPED_TRACE(model + ", stage " + stage);
      const std::string out = model + stage;
      const testing::Outcome said = good(train(out,
                                               {"--model_name_or_path",
                                                model,
                                                "--ranks",
                                                "2",
                                                "--zero_stage",
                                                stage,
                                                "--finetuning_type",
                                                "full",
                                                "--learning_rate",
                                                "0",
                                                "--add_tokens",
                                                "<a>,<b>"}));
      EXPECT_NE(said.errors.find("grows from 272 to 274 rows"), std::string::npos) << said.errors;
      const Tensors after = tensors_of(path(out + "/model.safetensors"));
      EXPECT_EQ(after.size(), before.size());
      for (const auto& [name, values] : before) {
        const bool has_rows = name == kEmbedding || name == "lm_head.weight";
        expect_grown(after.at(name), values, has_rows ? 2 : 0);
      }
      EXPECT_EQ(json_in(out + "/config.json").at("vocab_size"), 274);
      EXPECT_TRUE(knows(out, "<b>"));
      EXPECT_EQ(weights_in(out), weights_in(model + "0"));
    }
  }
}

TEST_F(Vocabulary, ATrainedModelKnowsItsTokensWithoutBeingTold) {
  const Json run = json_of(train("out",
                                 with_new({"--finetuning_type",
                                           "full",
                                           "--val_size",
                                           "4",
                                           "--learning_rate",
                                           "1e-2",
                                           "--max_steps",
                                           "20"})));
  const double loss = loss_of({"--model_name_or_path", "out"});
  EXPECT_NEAR(loss, run.at("eval_loss").get<double>(), 1e-6);
  EXPECT_LT(loss, loss_of(joined({"--model_name_or_path", "full"}, kNew)) - 0.1);
  // One token each, where the old tokenizer spells them.
  const Json ids = Json::parse(
      testing::run({.arguments = invocation({"tokenize", "--model_name_or_path", "out"}).arguments,
                    .input = "\"<call><think>\"\n",
                    .environment = {},
                    .working_folder = folder_.path()})
          .output);
  EXPECT_EQ(ids, Json::parse("[272, 273]"));
}

TEST_F(Vocabulary, AnAdapterBringsItsTokensToTheOldBase) {
  const Json run = json_of(train("out", with_new({"--val_size", "4", "--learning_rate", "1e-2"})));
  EXPECT_EQ(json_in("out/adapter_config.json").at("modules_to_save"),
            Json::parse(R"(["embed_tokens", "lm_head"])"));
  const Tensors adapter = tensors_of(path("out/adapter_model.safetensors"));
  EXPECT_EQ(adapter.at("base_model.model.model.embed_tokens.weight").size(),
            (kTokens + 3) * kHidden);
  EXPECT_EQ(adapter.at("base_model.model.lm_head.weight").size(), (kTokens + 3) * kHidden);

  const Words beside{"--model_name_or_path", "full", "--adapter_name_or_path", "out"};
  EXPECT_NEAR(loss_of(beside), run.at("eval_loss").get<double>(), 1e-6);
  EXPECT_NEAR(loss_of(joined(beside, kNew)), run.at("eval_loss").get<double>(), 1e-6);
  (void)good(joined(joined({"export", "--merge"}, beside), {"--output_dir", "merged"}));
  EXPECT_EQ(json_in("merged/config.json").at("vocab_size"), kTokens + 3);
  EXPECT_TRUE(knows("merged", "</think>"));
  EXPECT_NEAR(loss_of({"--model_name_or_path", "merged"}), loss_of(beside), 1e-5);

  // Going on with it, the model given as it was.
  (void)good(train("more", joined(kOnFull, {"--adapter_name_or_path", "out"})));
  EXPECT_TRUE(knows("more", "<call>"));
  EXPECT_EQ(tensors_of(path("more/adapter_model.safetensors")).size(), adapter.size());
}

TEST_F(Vocabulary, ARunWithNewTokensGoesOnToTheSameBits) {
  const Words words = with_new({"--save_steps", "2", "--max_steps", "4", "--zero_stage", "3"});
  (void)good(train("whole", words));
  (void)good(train("cut", words));
  cut_back_to("cut", 2);
  (void)good(train("cut", joined(words, {"--resume_from_checkpoint", "latest"})));
  EXPECT_EQ(weights_in("cut"), weights_in("whole"));
  refused(train("cut",
                joined(kOnFull,
                       {"--save_steps",
                        "2",
                        "--max_steps",
                        "4",
                        "--zero_stage",
                        "3",
                        "--resume_from_checkpoint",
                        "latest"})),
          4,
          {"trains other weights", "add_tokens"});
}

TEST_F(Vocabulary, ATokenizerThatIsLargerThanItsEmbeddingGetsRowsWhenAsked) {
  make_model("narrow", {.vocab_size = 260});
  const Words rows{"--model_name_or_path", "narrow", "--max_steps", "1"};
  refused(train("out", rows), 4, {"embedding rows 260", "--resize_vocab true"});
  (void)good(train("out", joined(rows, {"--resize_vocab", "true", "--finetuning_type", "full"})));
  EXPECT_EQ(json_in("out/config.json").at("vocab_size"), kTokens);
}

TEST_F(Vocabulary, WhatBecomesOfTokensIsSaid) {
  const Words once{"--max_steps", "1"};
  // Rows to spare, a token that is there already, rows that do not train.
  const std::string spare =
      good(train("a", joined(once, {"--add_tokens", "<call>", "--finetuning_type", "full"})))
          .errors;
  EXPECT_NE(spare.find("tokens added: 1 (id 272)"), std::string::npos) << spare;
  EXPECT_NE(spare.find("300 rows, enough for 273 tokens"), std::string::npos) << spare;
  EXPECT_TRUE(knows("a", "<call>"));
  const std::string there =
      good(train("b", joined(once, {"--model_name_or_path", "a", "--add_tokens", "<call>"})))
          .errors;
  EXPECT_NE(there.find("has already: 1 of 1"), std::string::npos) << there;
  const std::string frozen =
      good(train("c", with_new(joined(once, {"--finetuning_type", "freeze"})))).errors;
  EXPECT_NE(frozen.find("do not train: all of them stay at the mean"), std::string::npos) << frozen;
  refused(train("d", with_new({"--resize_vocab", "false"})),
          2,
          {"need 275 rows", "resize_vocab is false"});
  // A plan counts them: 3 rows of 32 numbers in the embedding, and the head that they untie.
  const auto parameters = [&](const Words& more) {
    return json_of(joined({"plan", "--model_name_or_path", "full"}, more))
        .at("parameters")
        .at("trainable")
        .get<std::int64_t>();
  };
  EXPECT_EQ(parameters(kNew) - parameters({}), 2 * (kTokens + 3) * kHidden);
}

}  // namespace
}  // namespace zeroth::e2e
