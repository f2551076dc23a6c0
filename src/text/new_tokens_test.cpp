#include "text/new_tokens.h"

#include "base/error.h"
#include "text/test_folder.h"
#include "text/tokenizer.h"
#include <gtest/gtest.h>

namespace zeroth::text {
namespace {

class Added : public ::testing::Test {
 protected:
  Added() {
    folder_.write("tokenizer.json",
                  R"({"version": "1.0",
                      "added_tokens": [{"id": 3, "content": "<end>", "special": true}],
                      "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2},
                                "merges": ["a b"]}})");
  }

  TestFolder folder_;
};

TEST_F(Added, TokensFollowThoseThatThereAreInHuggingFacesOrder) {
  const Tokenizer tokenizer =
      Tokenizer::load(folder_.path(), {.plain = {"tool", "ab", "call"}, .special = {"<think>"}});
  EXPECT_EQ(tokenizer.id_of("tool"), 4);
  EXPECT_EQ(tokenizer.id_of("call"), 5);
  EXPECT_EQ(tokenizer.id_of("<think>"), 6);
  EXPECT_EQ(tokenizer.id_of("ab"), 2);  // was there
  EXPECT_EQ(tokenizer.num_new(), 3);
  EXPECT_EQ(tokenizer.vocab_size(), 7);
  EXPECT_TRUE(tokenizer.is_special(6));
  EXPECT_FALSE(tokenizer.is_special(4));
  EXPECT_EQ(tokenizer.encode("abtool<think>a", false), (std::vector<TokenId>{2, 4, 6, 0}));
}

TEST_F(Added, TheFileWithThemIsTheSameTokenizer) {
  const NewTokens tokens{.plain = {"tool"}, .special = {"<think>"}};
  const TestFolder& folder = folder_;
  const std::string text = tokenizer_json_with(folder.path(), tokens);
  folder.write("tokenizer.json", text);
  const Tokenizer written = Tokenizer::load(folder.path());
  EXPECT_EQ(written.id_of("tool"), 4);
  EXPECT_EQ(written.id_of("<think>"), 5);
  EXPECT_TRUE(written.is_special(5));
  EXPECT_EQ(Tokenizer::load(folder.path(), tokens).num_new(), 0);
  EXPECT_EQ(tokenizer_json_with(folder.path(), tokens), text);
}

TEST_F(Added, ATokenThatIsThereBecomesSpecialWhereItIsAskedForAsThat) {
  const NewTokens tokens{.plain = {}, .special = {"ab", "<end>"}};
  const Tokenizer tokenizer = Tokenizer::load(folder_.path(), tokens);
  EXPECT_EQ(tokenizer.id_of("ab"), 2);
  EXPECT_TRUE(tokenizer.is_special(2));
  EXPECT_EQ(tokenizer.num_new(), 0);
  EXPECT_EQ(tokenizer.encode("aabb", false), (std::vector<TokenId>{0, 2, 1}));
  const TestFolder& folder = folder_;
  folder.write("tokenizer.json", tokenizer_json_with(folder.path(), tokens));
  EXPECT_TRUE(Tokenizer::load(folder.path()).is_special(2));
  // A plain added one.
  folder.write("tokenizer.json",
               tokenizer_json_with(folder.path(), {.plain = {"tool"}, .special = {}}));
  folder.write("tokenizer.json",
               tokenizer_json_with(folder.path(), {.plain = {}, .special = {"tool"}}));
  const Tokenizer written = Tokenizer::load(folder.path());
  EXPECT_EQ(written.id_of("tool"), 4);
  EXPECT_TRUE(written.is_special(4));
}

TEST_F(Added, ATokenCannotBePlainAndSpecial) {
  try {
    (void)Tokenizer::load(folder_.path(), {.plain = {"tool"}, .special = {"tool"}});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  }
}

TEST_F(Added, AnEmptyTokenIsRefused) {
  try {
    (void)Tokenizer::load(folder_.path(), {.plain = {""}, .special = {}});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  }
}

}  // namespace
}  // namespace zeroth::text
