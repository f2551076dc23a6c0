#include "data/dataset_info.h"

#include "data/load.h"
#include "data/test_support.h"
#include <gtest/gtest.h>

// Data sets by their names in LLaMA-Factory's dataset_info.json.
namespace zeroth::data {
namespace {

using test::byte_tokenizer;
using test::error_of;
using test::ids_of;
using test::kBos;
using test::kEos;
using test::TemporaryFolder;

class DatasetInfo : public ::testing::Test {
 protected:
  [[nodiscard]] Source source(const std::string& entry) {
    folder_.write(kDatasetInfo,
                  R"({"name": )" + entry + R"(, "identity": {"file_name": "i.json"}})");
    return named_source(folder_.path(), "name");
  }

  [[nodiscard]] std::string refusal(const std::string& entry, ErrorKind kind = ErrorKind::kConfig) {
    return error_of(kind, [&] { (void)source(entry); });
  }

  // The first row of the file of an entry, as text.
  std::string row(const std::string& entry, const std::string& file) {
    folder_.write("d.json", file);
    const Source from = source(entry);
    return tokenizer_.decode(load_examples({from}, tokenizer_, settings_).examples.at(0).input_ids,
                             /*skip_special_tokens=*/true);
  }

  TemporaryFolder folder_;
  text::Tokenizer tokenizer_ = byte_tokenizer(folder_);
  LoadSettings settings_{.embedding_rows = test::kByteVocabulary};
};

TEST_F(DatasetInfo, ColumnsAreThoseThatAreNamedAndNoOthers) {
  EXPECT_EQ(
      row(R"({"file_name": "d.json"})", R"([{"instruction": "a", "input": "b", "output": "c"}])"),
      "a\nbc");
  EXPECT_EQ(row(R"({"file_name": "d.json", "columns": {"prompt": "q", "response": "r"}})",
                R"([{"q": "x", "r": "y", "input": "not this", "instruction": "nor this"}])"),
            "xy");
  settings_.stage = Stage::kPretrain;
  EXPECT_EQ(row(R"({"file_name": "d.json", "columns": {"prompt": "body"}})",
                R"([{"body": "once", "text": "not this"}])"),
            "once");
}

TEST_F(DatasetInfo, ChatsBySpellingsOfTheirOwn) {
  EXPECT_EQ(
      row(R"({"file_name": "d.json", "formatting": "sharegpt"})",
          R"([{"conversations": [{"from": "human", "value": "a"}, {"from": "gpt", "value": "b"}]}])"),
      "ab");
  const std::string tags =
      R"({"file_name": "d.json", "formatting": "sharegpt", "columns": {"messages": "talk"},
          "tags": {"role_tag": "who", "content_tag": "what", "user_tag": "me", "assistant_tag": "you"}})";
  EXPECT_EQ(row(tags, R"([{"talk": [{"who": "me", "what": "a"}, {"who": "you", "what": "b"}]}])"),
            "ab");
  folder_.write("d.json",
                R"([{"talk": [{"who": "human", "what": "a"}, {"who": "you", "what": "b"}]}])");
  EXPECT_HAS(error_of(ErrorKind::kData,
                      [&] { (void)load_examples({source(tags)}, tokenizer_, settings_); }),
             R"(message 1: there is no role "human")");
  EXPECT_EQ(
      row(R"({"file_name": "d.json", "formatting": "openai"})",
          R"([{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]}])"),
      "ab");
}

TEST_F(DatasetInfo, WhatCannotBeReadIsRefusedByName) {
  EXPECT_HAS(refusal(R"({"hf_hub_url": "a/b"})", ErrorKind::kNotSupported), "\"hf_hub_url\"");
  EXPECT_HAS(refusal(R"({"file_name": "d.json", "ranking": true})", ErrorKind::kNotSupported),
             "\"ranking\"");
  EXPECT_HAS(refusal(R"({"file_name": "d.json", "num_samples": 10})", ErrorKind::kNotSupported),
             "--max_samples");
  EXPECT_HAS(
      refusal(R"({"file_name": "d.json", "columns": {"images": "i"}})", ErrorKind::kNotSupported),
      "\"images\" of \"columns\"");
}

TEST_F(DatasetInfo, WhatIsMeantOtherwiseIsAnError) {
  EXPECT_HAS(refusal(R"({"file_name": "d.json", "formating": "alpaca"})"),
             R"(there is no "formating" in an entry; "formatting" was meant?)");
  EXPECT_HAS(refusal(R"({"file_name": "d.json", "formatting": "chatml"})"), "none of alpaca");
  EXPECT_HAS(refusal(R"({})"), "there is no \"file_name\"");
  EXPECT_HAS(refusal(R"({"file_name": 3})"), "\"file_name\": expected a name, got 3");
  EXPECT_HAS(refusal(R"([1])"), "expected an object, got array");
  EXPECT_HAS(
      refusal(R"({"file_name": "d.json", "formatting": "sharegpt", "tags": {"role_tag": "r"}})"),
      "\"tags\" leaves out \"content_tag\"");
  (void)source(R"({"file_name": "d.json"})");
  EXPECT_HAS(error_of(ErrorKind::kData, [&] { (void)named_source(folder_.path(), "identiy"); }),
             "(identity was meant?)");
  folder_.write(kDatasetInfo, "{");
  EXPECT_HAS(error_of(ErrorKind::kData, [&] { (void)named_source(folder_.path(), "name"); }),
             "not valid JSON");
}

}  // namespace
}  // namespace zeroth::data
