#include "text/tokenizer.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include <gtest/gtest.h>

namespace zeroth::text {
namespace {

namespace fs = std::filesystem;

const fs::path kData = fs::path(ZEROTH_SOURCE_DIR) / "../shared/data";

fs::path folder_of(const std::string& name) {
  return name == "stories260K" ? kData / "models/stories260K-hf" : kData / "tokenizers" / name;
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

struct VectorCase {
  std::string vectors, tokenizer;
};

void PrintTo(const VectorCase& value, std::ostream* out) {
  *out << value.vectors;
}

class OracleVectors : public ::testing::TestWithParam<VectorCase> {};

TEST_P(OracleVectors, MatchInIdsAndText) {
  const fs::path file = kData / "tokenizer-vectors" / ("oracle_" + GetParam().vectors + ".jsonl");
  if (!fs::exists(file)) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  const auto start = std::chrono::steady_clock::now();
  const Tokenizer tokenizer = Tokenizer::load(folder_of(GetParam().tokenizer));
  std::cout << "loaded in " << seconds_since(start) << " s\n";
  std::ifstream lines(file);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const Json row = parse_json(line, file.string(), ErrorKind::kData, count + 1);
    const auto text = row["text"].get<std::string>();
    const auto ids = row["ids"].get<std::vector<TokenId>>();
    EXPECT_EQ(tokenizer.encode(text, false), ids) << text;
    EXPECT_EQ(tokenizer.encode(text, true), row["ids_special"].get<std::vector<TokenId>>()) << text;
    EXPECT_EQ(tokenizer.decode(ids, false), row["decoded"].get<std::string>()) << text;
  }
  EXPECT_EQ(count, 132U);
}

INSTANTIATE_TEST_SUITE_P(Files,
                         OracleVectors,
                         ::testing::Values(VectorCase{"minimind", "minimind"},
                                           VectorCase{"llama3_1", "llama3_1"},
                                           VectorCase{"qwen3", "qwen3"},
                                           VectorCase{"gemma3", "gemma3"},
                                           VectorCase{"stories260K", "stories260K"}),
                         [](const auto& instance) { return instance.param.vectors; });

std::vector<std::string> split_by(const std::string& text, const std::string& separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t at = text.find(separator); at != std::string::npos;
       at = text.find(separator, begin)) {
    parts.push_back(text.substr(begin, at - begin));
    begin = at + separator.size();
  }
  return parts;
}

std::vector<std::vector<TokenId>> id_lines(const fs::path& path) {
  std::vector<std::vector<TokenId>> rows;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::vector<TokenId>& row = rows.emplace_back();
    for (TokenId id = 0; words >> id;) {
      row.push_back(id);
    }
  }
  return rows;
}

class LlamaCppVectors : public ::testing::TestWithParam<VectorCase> {};

TEST_P(LlamaCppVectors, Match) {
  const std::string stem =
      (kData / "tokenizer-vectors" / ("llamacpp_" + GetParam().vectors)).string();
  if (!fs::exists(stem + ".inp")) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  const Tokenizer tokenizer = Tokenizer::load(folder_of(GetParam().tokenizer));
  const auto texts =
      split_by(read_file(stem + ".inp", ErrorKind::kData), "\n__ggml_vocab_test__\n");
  const auto expected = id_lines(stem + ".out");
  ASSERT_GE(texts.size(), 46U);
  ASSERT_EQ(texts.size(), expected.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(tokenizer.encode(texts[i], false), expected[i]) << texts[i];
  }
}

INSTANTIATE_TEST_SUITE_P(Files,
                         LlamaCppVectors,
                         ::testing::Values(VectorCase{"llama-bpe", "llama3_1"},
                                           VectorCase{"qwen2", "qwen3"},
                                           VectorCase{"llama-spm", "llama2"}),
                         [](const auto& instance) { return instance.param.tokenizer; });

TEST(Tokenizer, EncodesMegabytesInSeconds) {
  const fs::path file = kData / "text/tinyshakespeare.txt";
  if (!fs::exists(file)) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  const std::string text = read_file(file, ErrorKind::kData);
  for (const char* name : {"llama2", "gemma3", "stories260K", "minimind", "llama3_1", "qwen3"}) {
    const Tokenizer tokenizer = Tokenizer::load(folder_of(name));
    const auto start = std::chrono::steady_clock::now();
    const std::vector<TokenId> ids = tokenizer.encode(text, false);
    std::cout << name << ": " << text.size() << " bytes, " << ids.size() << " tokens in "
              << seconds_since(start) << " s\n";
    EXPECT_EQ(tokenizer.decode(ids, false), text);
  }
}

}  // namespace
}  // namespace zeroth::text
