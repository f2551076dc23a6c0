#include "data/load.h"
#include "data/test_support.h"
#include <gtest/gtest.h>

namespace zeroth::data {
namespace {

using test::byte_tokenizer;
using test::error_of;
using test::ids_of;
using test::kBos;
using test::TemporaryFolder;

class Prompts : public ::testing::Test {
 protected:
  std::vector<Prompt> load(std::string_view content, RowCounts* counts = nullptr) {
    return load_prompts({folder_.write("p.jsonl", content)}, tokenizer_, settings_, counts);
  }

  TemporaryFolder folder_;
  text::Tokenizer tokenizer_ = byte_tokenizer(folder_);
  LoadSettings settings_{.prompt_template = "default", .embedding_rows = test::kByteVocabulary};
};

TEST_F(Prompts, EndWhereTheAnswerBegins) {
  const auto prompts = load(R"({"instruction": "q", "output": "b", "history": [["p", "a"]]})");
  ASSERT_EQ(prompts.size(), 1U);
  EXPECT_EQ(prompts[0].prompt, "<s>Human: p</s>\nAssistant:a</s>\nHuman: q</s>\nAssistant:");
  EXPECT_EQ(prompts[0].label, "b");
  EXPECT_EQ(prompts[0].ids.front(), kBos);
  EXPECT_EQ(prompts[0].ids.back(), ids_of(":")[0]);
}

TEST_F(Prompts, D05_EveryRowComesInOrderWithOrWithoutAnAnswer) {
  RowCounts counts;
  const auto prompts =
      load("{\"instruction\": \"q\"}\n{\"instruction\": \"r\", \"output\": \"\"}\n", &counts);
  ASSERT_EQ(prompts.size(), 2U);
  EXPECT_EQ(prompts[0].label, "");
  EXPECT_EQ(prompts[1].row, 1);
  EXPECT_EQ(counts.read, 2);
  EXPECT_EQ(counts.kept, 2);
}

TEST_F(Prompts, AreThePromptsOfTraining) {
  const std::string row = R"({"instruction": "q", "output": "answer"})";
  const auto example =
      load_examples({folder_.write("t.jsonl", row)}, tokenizer_, settings_).examples.at(0);
  const auto prompt = load(row).at(0);
  EXPECT_TRUE(std::equal(prompt.ids.begin(), prompt.ids.end(), example.input_ids.begin()));
}

TEST_F(Prompts, TooLongOrEmptyOnesAreRefusedOrCounted) {
  settings_.prompt_template = "empty";
  settings_.cutoff_len = 4;
  const std::string rows = "{\"instruction\": \"abc\"}\n{\"instruction\": \"abcd\"}\n";
  const std::string message = error_of(ErrorKind::kData, [&] { (void)load(rows); });
  EXPECT_HAS(message, "p.jsonl:2: the prompt has 5 tokens, cutoff_len is 4");
  settings_.skip_bad_rows = true;
  RowCounts counts;
  EXPECT_EQ(load(rows, &counts).size(), 1U);
  EXPECT_EQ(counts.dropped_bad, 1);
}

}  // namespace
}  // namespace zeroth::data
