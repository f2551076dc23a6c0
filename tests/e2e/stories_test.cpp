#include "e2e/support.h"

// A real pre-trained model on real text.
namespace zeroth::e2e {
namespace {

class Stories : public EndToEnd {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(shared_data())) {
      GTEST_SKIP() << "needs ../shared/data";
    }
    const std::string text = content_of(shared_data() / "text/tinyshakespeare.txt");
    write("train.txt", text.substr(0, 200000));
    write("held-out.txt", text.substr(text.size() - 6000));
    model_ = (shared_data() / "models/stories260K-hf").string();
  }

  // 60 updates of 4 x 128 tokens; the held-out loss after them.
  [[nodiscard]] double loss_after(const Words& more) const {
    const Words words = joined({"--model_name_or_path",
                                model_,
                                "--stage",
                                "pt",
                                "--dataset",
                                "train.txt",
                                "--eval_dataset",
                                "held-out.txt",
                                "--cutoff_len",
                                "128",
                                "--per_device_train_batch_size",
                                "4",
                                "--max_steps",
                                "60"},
                               more);
    return json_of(train("out", words)).at("eval_loss").get<double>();
  }

  std::string model_;
};

TEST_F(Stories, KnowsNoShakespeareAtFirst) {
  const double loss = json_of({"eval",
                               "--model_name_or_path",
                               model_,
                               "--stage",
                               "pt",
                               "--eval_dataset",
                               "held-out.txt",
                               "--cutoff_len",
                               "128"})
                          .at("loss")
                          .get<double>();
  EXPECT_GT(loss, 4.8);
}

TEST_F(Stories, LoraLearnsShakespeare) {
  EXPECT_LT(loss_after({"--lora_rank", "8", "--learning_rate", "1e-2"}), 3.3);
}

TEST_F(Stories, FullTrainingLearnsShakespeare) {
  EXPECT_LT(loss_after({"--finetuning_type", "full", "--learning_rate", "2e-3"}), 3.2);
}

TEST_F(Stories, ATextThatSpellsTheBosTokenIsPointedOut) {
  write("twice.json", R"([{"instruction": "<s>hello", "output": "x"}])");
  const testing::Outcome outcome = good(train(
      "out", {"--model_name_or_path", model_, "--dataset", "twice.json", "--max_steps", "1"}));
  EXPECT_NE(outcome.errors.find("1 rows spell \"<s>\" in their text"), std::string::npos)
      << outcome.errors;
}

}  // namespace
}  // namespace zeroth::e2e
