#include <functional>

#include "base/error.h"
#include "text/test_folder.h"
#include "text/tokenizer.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zeroth::text {
namespace {

constexpr const char* kModel =
    R"("model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "</s>": 3}, "merges": ["a b"]})";

std::string with_model(const std::string& members) {
  return fmt::format("{{{}{}{}}}", members, members.empty() ? "" : ", ", kModel);
}

std::string with_split(const char* pattern) {
  return with_model(fmt::format(
      R"("pre_tokenizer": {{"type": "Split", "behavior": "Isolated", "pattern": {{"Regex": "{}"}}}})",
      pattern));
}

void expect_error(ErrorKind kind,
                  const std::vector<std::string>& words,
                  const std::function<void()>& act) {
  try {
    act();
    FAIL() << "accepted, though an error with \"" << words.front() << "\" was due";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << word << " is not in: " << error.what();
    }
  }
}

void expect_refused(const std::string& file,
                    ErrorKind kind,
                    const std::vector<std::string>& words) {
  const TestFolder folder;
  folder.write("tokenizer.json", file);
  expect_error(kind, words, [&] { (void)Tokenizer::load(folder.path()); });
}

TEST(TokenizerFile, ASmallOneWorks) {
  const TestFolder folder;
  folder.write("tokenizer.json", with_model(""));
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.encode("abba", false), (std::vector<TokenId>{2, 1, 0}));
  EXPECT_EQ(tokenizer.decode(tokenizer.encode("ab", false), false), "ab");
  EXPECT_EQ(tokenizer.vocab_size(), 4);
  EXPECT_EQ(tokenizer.token_of(2), "ab");
  EXPECT_EQ(tokenizer.token_of(77), "");
  EXPECT_FALSE(tokenizer.id_of("zz"));
  EXPECT_TRUE(tokenizer.encode("", true).empty());
}

TEST(TokenizerFile, AFolderWithoutOneSaysWhatItHasInstead) {
  const TestFolder folder;
  expect_error(
      ErrorKind::kModel, {"tokenizer.json"}, [&] { (void)Tokenizer::load(folder.path()); });
  folder.write("tokenizer.model", "x");
  expect_error(ErrorKind::kNotSupported, {"tokenizer.model", "save_pretrained"}, [&] {
    (void)Tokenizer::load(folder.path());
  });
}

TEST(TokenizerFile, TruncationIsNamedWithItsPlace) {
  const std::string whole = with_model("");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    expect_refused(whole.substr(0, length), ErrorKind::kFormat, {"tokenizer.json:1:", "cut off"});
  }
}

TEST(TokenizerFile, MergesOfUnknownTokensAreNamed) {
  expect_refused(R"({"model": {"vocab": {"a": 0, "b": 1}, "merges": [["a", "b"]]}})",
                 ErrorKind::kFormat,
                 {"\"a\" and \"b\"", "\"ab\"", "model.vocab"});
  expect_refused(R"({"model": {"vocab": {"a": 0, "ac": 1}, "merges": ["a c"]}})",
                 ErrorKind::kFormat,
                 {"\"c\""});
}

TEST(TokenizerFile, WrongTypesAreNamed) {
  expect_refused(R"([1])", ErrorKind::kFormat, {"expected '{'"});
  expect_refused(R"({"model": {"vocab": {"a": "0"}, "merges": []}})",
                 ErrorKind::kFormat,
                 {":1:27", "whole number"});
  expect_refused(
      R"({"model": {"vocab": {"a": -1}, "merges": []}})", ErrorKind::kFormat, {"out of range"});
  expect_refused(R"({"model": {"vocab": {"a": 2000000000}, "merges": []}})",
                 ErrorKind::kFormat,
                 {"out of range"});
  expect_refused(
      R"({"model": {"vocab": {"a": 0, "b": 0}, "merges": []}})", ErrorKind::kFormat, {"twice"});
  expect_refused(
      R"({"model": {"vocab": {"a": 0}, "merges": ["aa"]}})", ErrorKind::kFormat, {"two tokens"});
  expect_refused(
      R"({"model": {"vocab": {"a": 0}, "merges": [["a"]]}})", ErrorKind::kFormat, {"2 are wanted"});
  expect_refused(R"({"model": {"vocab": {"a": 0}}})", ErrorKind::kFormat, {"merges"});
  expect_refused(R"({"version": "1.0"})", ErrorKind::kFormat, {"model"});
  expect_refused(
      with_model(R"("normalizer": "NFC")"), ErrorKind::kFormat, {"normalizer", "object"});
  expect_refused(
      with_model(R"("decoder": {"type": "Strip", "content": " ", "start": "1", "stop": 0})"),
      ErrorKind::kFormat,
      {"decoder", "\"start\""});
  expect_refused(with_model(R"("added_tokens": [{"id": 0, "content": "x"}])"),
                 ErrorKind::kFormat,
                 {"\"x\"", "taken"});
  expect_refused(with_model("") + "x", ErrorKind::kFormat, {"after the end"});
  expect_refused("{\"model\": \"\xff\"}", ErrorKind::kFormat, {"UTF-8"});
}

TEST(TokenizerFile, WhatIsNotBuiltIsRefusedByName) {
  expect_refused(R"({"model": {"type": "Unigram", "unk_id": 0, "vocab": [["a", -1.5]]}})",
                 ErrorKind::kNotSupported,
                 {"Unigram"});
  expect_refused(R"({"model": {"type": "BPE", "dropout": 0.1, "vocab": {"a": 0}, "merges": []}})",
                 ErrorKind::kNotSupported,
                 {"dropout"});
  expect_refused(R"({"model": {"end_of_word_suffix": "</w>", "vocab": {"a": 0}, "merges": []}})",
                 ErrorKind::kNotSupported,
                 {"end_of_word_suffix", "</w>"});
  expect_refused(with_model(R"("normalizer": {"type": "Precompiled", "precompiled_charsmap": ""})"),
                 ErrorKind::kNotSupported,
                 {"normalizer", "Precompiled"});
  expect_refused(
      with_model(
          R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "BertPreTokenizer"}]})"),
      ErrorKind::kNotSupported,
      {"pretokenizers[0]", "BertPreTokenizer"});
  expect_refused(with_model(R"("post_processor": {"type": "BertProcessing"})"),
                 ErrorKind::kNotSupported,
                 {"BertProcessing"});
  expect_refused(
      with_model(R"("decoder": {"type": "WordPiece"})"), ErrorKind::kNotSupported, {"WordPiece"});
  expect_refused(with_model(R"("normalizer": {"type": "NFC", "speed": 3})"),
                 ErrorKind::kNotSupported,
                 {"\"speed\""});
  expect_refused(with_model(R"("extra": 1)"), ErrorKind::kNotSupported, {"\"extra\""});
  for (const char* pattern : {"[a&&b]", "[a[bc]]", R"(\\h+)"}) {
    expect_refused(with_split(pattern), ErrorKind::kNotSupported, {"pattern"});
  }
  expect_refused(with_split("("), ErrorKind::kFormat, {"compile"});
}

TEST(TokenizerFile, EscapesAreRead) {
  const TestFolder folder;
  folder.write("tokenizer.json",
               "\n {\"model\": {\"vocab\": {\"\\u00e9\": 0, \"\\ud83d\\ude00\" :1,\"\\\"\": 2, "
               "\"\\n\": 3}, \"merges\": []} } \n");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.encode("\u00e9\U0001F600\"\n", false), (std::vector<TokenId>{0, 1, 2, 3}));
  expect_refused(R"({"model": {"vocab": {"\ud83d": 0}}})", ErrorKind::kFormat, {"surrogate"});
  expect_refused(R"({"model": {"vocab": {"\q": 0}}})", ErrorKind::kFormat, {"backslash"});
}

TEST(TokenizerConfig, NamesSpecialTokens) {
  const TestFolder folder;
  folder.write("tokenizer.json", with_model(""));
  folder.write("tokenizer_config.json",
               R"({"eos_token": {"content": "</s>"}, "bos_token": "a", "pad_token": null})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.eos_id(), 3);
  EXPECT_EQ(tokenizer.bos_id(), 0);
  EXPECT_FALSE(tokenizer.pad_id());
  EXPECT_TRUE(tokenizer.is_special(3));
  EXPECT_FALSE(tokenizer.has_chat_template());
  // A token that the configuration names is looked for in text, as Transformers does.
  EXPECT_EQ(tokenizer.encode("b</s>", false), (std::vector<TokenId>{1, 3}));
  EXPECT_EQ(tokenizer.decode(std::vector<TokenId>{1, 3}, true), "b");
}

TEST(TokenizerConfig, SpecialTokensMapFillsGaps) {
  const TestFolder folder;
  folder.write("tokenizer.json", with_model(""));
  folder.write("tokenizer_config.json", R"({"pad_token": "b"})");
  folder.write("special_tokens_map.json", R"({"eos_token": "</s>", "pad_token": "a"})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.eos_id(), 3);
  EXPECT_EQ(tokenizer.pad_id(), 1);
}

TEST(TokenizerConfig, TheEndTokenIsGuessedOnlyWhereNothingNamesIt) {
  const TestFolder folder;
  folder.write("tokenizer.json",
               with_model(R"("added_tokens": [{"id": 3, "content": "</s>", "special": true}])"));
  EXPECT_EQ(Tokenizer::load(folder.path()).eos_id(), 3);
  folder.write("tokenizer_config.json", R"({"eos_token": null})");
  EXPECT_FALSE(Tokenizer::load(folder.path()).eos_id());
  folder.write("tokenizer_config.json", R"({"eos_token": "<eos>"})");
  expect_error(
      ErrorKind::kModel, {"eos_token", "<eos>"}, [&] { (void)Tokenizer::load(folder.path()); });
}

TEST(TokenizerConfig, AddsTokensThatTokenizerJsonLacks) {
  const TestFolder folder;
  folder.write("tokenizer.json", with_model(""));
  folder.write("tokenizer_config.json",
               R"({"added_tokens_decoder": {"9": {"content": "<x>", "special": true}}})");
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.encode("a<x>b", false), (std::vector<TokenId>{0, 9, 1}));
  EXPECT_EQ(tokenizer.vocab_size(), 5);
  EXPECT_EQ(tokenizer.max_id(), 9);
}

TEST(TokenizerConfig, SeesChatTemplates) {
  const TestFolder folder;
  folder.write("tokenizer.json", with_model(""));
  folder.write("tokenizer_config.json", R"({"chat_template": "{{ x }}"})");
  EXPECT_TRUE(Tokenizer::load(folder.path()).has_chat_template());
  folder.write("tokenizer_config.json", R"({"chat_template": null})");
  EXPECT_FALSE(Tokenizer::load(folder.path()).has_chat_template());
  folder.write("chat_template.jinja", "{{ x }}");
  EXPECT_TRUE(Tokenizer::load(folder.path()).has_chat_template());
  EXPECT_EQ(Tokenizer::files_in(folder.path()).size(), 3U);
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const TestFolder folder;
  folder.write("tokenizer.json", with_model(""));
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  expect_error(
      ErrorKind::kData, {"byte 1", "0xFF"}, [&] { (void)tokenizer.encode("a\xff", false); });
}

}  // namespace
}  // namespace zeroth::text
