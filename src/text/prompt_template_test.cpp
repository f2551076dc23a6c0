#include "text/prompt_template.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "text/bpe_trainer.h"
#include "text/test_folder.h"
#include <gtest/gtest.h>

namespace zeroth::text {
namespace {

Tokenizer byte_tokenizer(const TestFolder& folder) {
  (void)train_byte_level_bpe({}, {.vocab_size = 258}, folder.path());
  return Tokenizer::load(folder.path());
}

std::string text_of(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  return tokenizer.decode(ids, false);
}

TEST(PromptTemplate, KnowsItsNames) {
  EXPECT_EQ(PromptTemplate::names(), (std::vector<std::string>{"alpaca", "default", "empty"}));
  try {
    (void)PromptTemplate::named("vicuna");
    FAIL() << "an unknown template was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(std::string(error.what()).find("alpaca, default, empty"), std::string::npos)
        << error.what();
  }
}

TEST(PromptTemplate, AlpacaWritesItsTexts) {
  const TestFolder folder;
  const Tokenizer tokenizer = byte_tokenizer(folder);
  const std::vector<Turn> turns = {{"Add 1 and 2.", "3"}, {"And 2 and 2?", "4"}};
  const auto encoded = PromptTemplate::named("alpaca").encode(tokenizer, "", turns);
  ASSERT_EQ(encoded.size(), 2U);
  EXPECT_EQ(text_of(tokenizer, encoded[0].prompt),
            "Below is an instruction that describes a task. Write a response that appropriately "
            "completes the "
            "request.\n\n### Instruction:\nAdd 1 and 2.\n\n### Response:\n");
  EXPECT_EQ(text_of(tokenizer, encoded[0].answer), "3<|endoftext|>");
  EXPECT_EQ(text_of(tokenizer, encoded[1].prompt),
            "\n\n### Instruction:\nAnd 2 and 2?\n\n### Response:\n");
  EXPECT_EQ(text_of(tokenizer, encoded[1].answer), "4<|endoftext|>");
}

TEST(PromptTemplate, AlpacaTakesAnotherSystemText) {
  const TestFolder folder;
  const Tokenizer tokenizer = byte_tokenizer(folder);
  const std::vector<Turn> turns = {{"x", "y"}};
  const auto encoded = PromptTemplate::named("alpaca").encode(tokenizer, "Be brief.", turns);
  EXPECT_EQ(text_of(tokenizer, encoded[0].prompt),
            "Be brief.\n\n### Instruction:\nx\n\n### Response:\n");
}

TEST(PromptTemplate, DefaultClosesSystemAndUserToo) {
  const TestFolder folder;
  const Tokenizer tokenizer = byte_tokenizer(folder);
  const std::vector<Turn> turns = {{"x", "y"}, {"u", "v"}};
  const auto encoded = PromptTemplate::named("default").encode(tokenizer, "s", turns);
  EXPECT_EQ(text_of(tokenizer, encoded[0].prompt),
            "System: s<|endoftext|>\nHuman: x<|endoftext|>\nAssistant:");
  EXPECT_EQ(text_of(tokenizer, encoded[1].prompt), "\nHuman: u<|endoftext|>\nAssistant:");
  const auto without_system = PromptTemplate::named("default").encode(tokenizer, "", turns);
  EXPECT_EQ(text_of(tokenizer, without_system[0].prompt), "Human: x<|endoftext|>\nAssistant:");
}

TEST(PromptTemplate, EveryAnswerEndsInATrainedEndToken) {
  const TestFolder folder;
  const Tokenizer tokenizer = byte_tokenizer(folder);
  const std::vector<Turn> turns = {{"x", "y"}, {"u", ""}};
  for (const std::string& name : PromptTemplate::names()) {
    for (const auto& turn : PromptTemplate::named(name).encode(tokenizer, "", turns)) {
      ASSERT_FALSE(turn.answer.empty()) << name;
      EXPECT_EQ(turn.answer.back(), tokenizer.eos_id()) << name;
      EXPECT_EQ(turn.num_answer_targets, turn.answer.size()) << name;
    }
  }
}

TEST(PromptTemplate, EmptyAddsNothingButTheEnd) {
  const TestFolder folder;
  const Tokenizer tokenizer = byte_tokenizer(folder);
  const std::vector<Turn> turns = {{"x", "y"}, {"u", "v"}};
  const auto encoded = PromptTemplate::named("empty").encode(tokenizer, "", turns);
  EXPECT_EQ(text_of(tokenizer, encoded[0].prompt), "x");
  EXPECT_EQ(text_of(tokenizer, encoded[1].prompt), "u");
}

TEST(PromptTemplate, BosComesOnceAtTheVeryStart) {
  const std::filesystem::path model =
      std::filesystem::path(ZEROTH_SOURCE_DIR) / "../shared/data/models/stories260K-hf";
  if (!std::filesystem::exists(model)) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  const Tokenizer tokenizer = Tokenizer::load(model);
  const std::vector<Turn> turns = {{"Once", "upon"}, {"a", "time"}};
  for (const std::string& name : PromptTemplate::names()) {
    std::vector<TokenId> ids;
    for (const auto& turn : PromptTemplate::named(name).encode(tokenizer, "", turns)) {
      ids.insert(ids.end(), turn.prompt.begin(), turn.prompt.end());
      ids.insert(ids.end(), turn.answer.begin(), turn.answer.end());
    }
    EXPECT_EQ(ids.front(), tokenizer.bos_id()) << name;
    EXPECT_EQ(std::count(ids.begin(), ids.end(), *tokenizer.bos_id()), 1) << name;
  }
}

TEST(PromptTemplate, SlotsAreTokenisedByThemselves) {
  const TestFolder folder;
  const std::vector<std::string> texts(50, "xy xy xy");
  (void)train_byte_level_bpe(texts, {.vocab_size = 300}, folder.path());
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  ASSERT_TRUE(tokenizer.id_of("xy"));
  const std::vector<Turn> turns = {{"x", "y"}};
  const auto encoded = PromptTemplate::named("empty").encode(tokenizer, "", turns);
  EXPECT_EQ(encoded[0].prompt, (std::vector<TokenId>{*tokenizer.id_of("x")}));
  EXPECT_EQ(encoded[0].answer, (std::vector<TokenId>{*tokenizer.id_of("y"), *tokenizer.eos_id()}));
}

TEST(PromptTemplate, RefusesATokenizerWithoutAnEndToken) {
  const TestFolder folder;
  folder.write("tokenizer.json", R"({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  const std::vector<Turn> turns = {{"a", "a"}};
  try {
    (void)PromptTemplate::named("empty").encode(tokenizer, "", turns);
    FAIL() << "no end token, and yet encoded";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kModel);
    EXPECT_NE(std::string(error.what()).find("eos_token"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace zeroth::text
