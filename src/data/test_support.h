#pragma once

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "data/example.h"
#include "text/byte_level.h"
#include "text/tokenizer.h"
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

// What the tests of this folder share.
namespace zeroth::data::test {

class TemporaryFolder {
 public:
  TemporaryFolder()
      : path_(std::filesystem::temp_directory_path() /
              fmt::format("zeroth_data_test_{}_{}",
                          ::getpid(),
                          ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    std::filesystem::create_directories(path_);
  }

  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  ~TemporaryFolder() { std::filesystem::remove_all(path_); }

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::string& name, std::string_view content) const {
    std::ofstream(path_ / name, std::ios::binary)
        << content;  // no sync: tests need not survive a crash
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

// A tokenizer of single bytes, so that tests can tell every id: <s> 0, </s> 1, <x> 2, byte b is 3 +
// b. It writes <s> before a sequence and nothing after it, as LLaMA's does.
inline constexpr text::TokenId kBos = 0;
inline constexpr text::TokenId kEos = 1;
inline constexpr std::int64_t kByteVocabulary = 259;

inline text::TokenId id_of_byte(char c) {
  return 3 + static_cast<unsigned char>(c);
}

inline std::vector<text::TokenId> ids_of(std::string_view text) {
  std::vector<text::TokenId> ids;
  for (const char c : text) {
    ids.push_back(id_of_byte(c));
  }
  return ids;
}

inline text::Tokenizer byte_tokenizer(const TemporaryFolder& folder) {
  Json vocabulary = Json::object();
  Json added = Json::array();
  for (const char* token : {"<s>", "</s>", "<x>"}) {
    added.push_back({{"id", vocabulary.size()},
                     {"content", token},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
    vocabulary[token] = vocabulary.size();
  }
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary[std::string(text::byte_character(static_cast<unsigned char>(byte)))] = 3 + byte;
  }
  const Json bos_then_text = Json::parse(
      R"([{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}])");
  const Json tokenizer{
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", added},
      {"normalizer", nullptr},
      {"pre_tokenizer",
       {{"type", "ByteLevel"},
        {"add_prefix_space", false},
        {"trim_offsets", true},
        {"use_regex", true}}},
      {"post_processor",
       {{"type", "TemplateProcessing"},
        {"single", bos_then_text},
        {"pair", bos_then_text},
        {"special_tokens",
         {{"<s>", {{"id", "<s>"}, {"ids", Json::array({0})}, {"tokens", Json::array({"<s>"})}}}}}}},
      {"decoder",
       {{"type", "ByteLevel"},
        {"add_prefix_space", false},
        {"trim_offsets", true},
        {"use_regex", true}}},
      {"model",
       {{"type", "BPE"},
        {"dropout", nullptr},
        {"unk_token", nullptr},
        {"continuing_subword_prefix", nullptr},
        {"end_of_word_suffix", nullptr},
        {"fuse_unk", false},
        {"byte_fallback", false},
        {"vocab", vocabulary},
        {"merges", Json::array()}}}};
  folder.write("tokenizer.json", tokenizer.dump());
  folder.write("tokenizer_config.json",
               R"({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": true})");
  return text::Tokenizer::load(folder.path());
}

// The message of the Error that `action` throws, "" where it throws none.
template <typename Action>
std::string error_of(ErrorKind kind, Action&& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

inline std::filesystem::path shared_data() {
  return std::filesystem::path(ZEROTH_SOURCE_DIR) / "../shared/data";
}

}  // namespace zeroth::data::test

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)
#define NEEDS_SHARED_DATA()                                            \
  if (!std::filesystem::exists(::zeroth::data::test::shared_data())) { \
    GTEST_SKIP() << "needs ../shared/data";                            \
  }                                                                    \
  static_assert(true)
