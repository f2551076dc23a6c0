#include "text/bpe_trainer.h"

#include <chrono>
#include <iostream>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "text/pair_learner.h"
#include "text/test_folder.h"
#include "text/tokenizer.h"
#include "text/utf8.h"
#include <gtest/gtest.h>

namespace zeroth::text {
namespace {

// Chinese and an emoji among English words.
const std::vector<std::string> kTexts = {
    "the cat sat on the mat; the cat's hat was 12 inches",
    "\u4eca\u5929\u5929\u6c14\u5f88\u597d\uff0c\u4eca\u5929\u6211\u4eec\u53bb\u516c\u56ed\u3002",
    "the cat and the hat\n\n  indented\tthe end \U0001F600\U0001F600",
};

std::string file_text(const TestFolder& folder, const char* name) {
  return read_file(folder.path() / name, ErrorKind::kModel);
}

TEST(BpeTrainer, WritesWhatTheTokenizerLoads) {
  const TestFolder folder;
  const TrainedTokenizer trained = train_byte_level_bpe(kTexts, {.vocab_size = 275}, folder.path());
  EXPECT_EQ(trained.vocab_size, 275);
  EXPECT_EQ(trained.num_merges, 275 - 258);
  EXPECT_EQ(trained.files.size(), 3U);
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.vocab_size(), 275);
  EXPECT_EQ(tokenizer.max_id(), 274);
  EXPECT_EQ(tokenizer.eos_id(), tokenizer.id_of("<|endoftext|>"));
  EXPECT_EQ(tokenizer.pad_id(), tokenizer.id_of("<|pad|>"));
  EXPECT_FALSE(tokenizer.bos_id());
  EXPECT_TRUE(tokenizer.is_special(*tokenizer.eos_id()));
  EXPECT_TRUE(tokenizer.prefix_ids().empty());
  EXPECT_TRUE(tokenizer.id_of("the"));
  for (const std::string& text : kTexts) {
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, true), true), text);
  }
}

TEST(BpeTrainer, WritesTheComponentsThatOthersRead) {
  const TestFolder folder;
  (void)train_byte_level_bpe(kTexts, {.vocab_size = 260}, folder.path());
  const Json file =
      parse_json(file_text(folder, "tokenizer.json"), "tokenizer.json", ErrorKind::kFormat);
  EXPECT_EQ(file["version"], "1.0");
  EXPECT_EQ(file["model"]["type"], "BPE");
  EXPECT_EQ(file["model"]["vocab"].size(), 260U);
  EXPECT_EQ(file["decoder"]["type"], "ByteLevel");
  EXPECT_EQ(file["pre_tokenizer"]["pretokenizers"][1]["type"], "ByteLevel");
  EXPECT_TRUE(file["normalizer"].is_null());
  EXPECT_EQ(file["added_tokens"][0]["content"], "<|endoftext|>");
  EXPECT_EQ(file["model"]["vocab"]["<|endoftext|>"], file["added_tokens"][0]["id"]);
  const Json config =
      parse_json(file_text(folder, "tokenizer_config.json"), "config", ErrorKind::kFormat);
  EXPECT_EQ(config["eos_token"], "<|endoftext|>");
  EXPECT_EQ(config["tokenizer_class"], "PreTrainedTokenizerFast");
  EXPECT_TRUE(config["bos_token"].is_null());
}

TEST(BpeTrainer, AnyUtf8ComesBack) {
  const TestFolder folder;
  (void)train_byte_level_bpe(kTexts, {.vocab_size = 300}, folder.path());
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  RandomStream random(7, 1);
  for (int round = 0; round < 300; ++round) {
    std::string text;
    for (std::uint64_t i = random.below(40); i > 0; --i) {
      const auto bound = std::array{0x80U, 0x800U, 0x10000U, 0x110000U}[random.below(4)];
      const auto point = static_cast<std::uint32_t>(random.below(bound));
      append_utf8(text, point >= 0xD800 && point <= 0xDFFF ? ' ' : point);
    }
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text, false), false), text);
  }
}

TEST(BpeTrainer, IsAFunctionOfItsInput) {
  const TestFolder folder;
  const auto file_of = [&](const std::vector<std::string>& texts, const char* name) {
    (void)train_byte_level_bpe(texts, {.vocab_size = 320}, folder.path() / name);
    return read_file(folder.path() / name / "tokenizer.json", ErrorKind::kModel);
  };
  const std::string first = file_of(kTexts, "a");
  EXPECT_EQ(file_of(kTexts, "b"), first);
  EXPECT_EQ(file_of({kTexts.rbegin(), kTexts.rend()}, "c"), first)
      << "the order of texts must not matter";
}

TEST(BpeTrainer, StopsWhereNothingIsLeftToMerge) {
  const TestFolder folder;
  const std::vector<std::string> texts(3, "ab");
  const TrainedTokenizer trained = train_byte_level_bpe(texts, {.vocab_size = 500}, folder.path());
  EXPECT_EQ(trained.num_merges, 1);
  EXPECT_EQ(trained.vocab_size, 259);
}

TEST(BpeTrainer, NeverMergesASpecialToken) {
  const TestFolder folder;
  const std::vector<std::string> texts(20, "Human Human<|endoftext|>Human");
  const TrainerSettings settings{.vocab_size = 400, .more_special_tokens = {"Human"}};
  const TrainedTokenizer trained = train_byte_level_bpe(texts, settings, folder.path());
  EXPECT_EQ(trained.num_merges, 0);
}

TEST(BpeTrainer, RefusesAVocabularyWithoutRoom) {
  const TestFolder folder;
  try {
    (void)train_byte_level_bpe(kTexts, {.vocab_size = 257}, folder.path());
    FAIL() << "257 entries cannot hold 256 bytes and 2 special tokens";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(std::string(error.what()).find("258"), std::string::npos) << error.what();
  }
}

TEST(BpeTrainer, RefusesTextThatIsNotUtf8) {
  const TestFolder folder;
  const std::vector<std::string> texts = {"fine", "bad \xff"};
  try {
    (void)train_byte_level_bpe(texts, {.vocab_size = 300}, folder.path());
    FAIL() << "0xff is not UTF-8";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kData);
  }
}

// The definition, without any bookkeeping: count all pairs, join the most frequent.
std::vector<PairLearner::Pair> learn_slowly(std::vector<PairLearner::Word> words,
                                            int num_merges,
                                            TokenId next) {
  std::vector<PairLearner::Pair> learned;
  for (int m = 0; m < num_merges; ++m) {
    std::map<PairLearner::Pair, std::int64_t> counts;
    for (const auto& word : words) {
      for (std::size_t i = 1; i < word.tokens.size(); ++i) {
        counts[{word.tokens[i - 1], word.tokens[i]}] += word.count;
      }
    }
    PairLearner::Pair best{kNoToken, kNoToken};
    std::int64_t most = 0;
    for (const auto& [pair, count] : counts) {
      best = count > most ? pair : best;
      most = std::max(most, count);
    }
    learned.push_back(best);
    for (auto& word : words) {
      std::vector<TokenId> merged;
      for (std::size_t i = 0; i < word.tokens.size(); ++i) {
        const bool joins = i + 1 < word.tokens.size() && word.tokens[i] == best.first &&
                           word.tokens[i + 1] == best.second;
        merged.push_back(joins ? next : word.tokens[i]);
        i += joins ? 1U : 0U;
      }
      word.tokens = merged;
    }
    ++next;
  }
  return learned;
}

TEST(PairLearner, AgreesWithCountingAnew) {
  RandomStream random(3, 2);
  for (int round = 0; round < 20; ++round) {
    std::vector<PairLearner::Word> words(60);
    for (auto& word : words) {
      word.count = static_cast<std::int64_t>(1 + random.below(9));
      for (std::uint64_t i = 1 + random.below(12); i > 0; --i) {
        word.tokens.push_back(static_cast<TokenId>(random.below(3)));  // few letters: many overlaps
      }
    }
    constexpr int kMerges = 25;
    const auto expected = learn_slowly(words, kMerges, 100);
    PairLearner learner(words);
    for (int m = 0; m < kMerges; ++m) {
      ASSERT_EQ(learner.best_pair(1), expected[static_cast<std::size_t>(m)])
          << "merge " << m << " of round " << round;
      learner.merge(expected[static_cast<std::size_t>(m)], 100 + m);
    }
  }
}

TEST(BpeTrainer, LearnsFromMegabytes) {
  const std::filesystem::path data =
      std::filesystem::path(ZEROTH_SOURCE_DIR) / "../shared/data/text";
  if (!std::filesystem::exists(data)) {
    GTEST_SKIP() << "needs ../shared/data";
  }
  std::vector<std::string> texts;
  for (const char* name : {"tinyshakespeare.txt", "songci_simplified_1.5MB.txt"}) {
    texts.push_back(read_file(data / name, ErrorKind::kData));
  }
  const TestFolder folder;
  const auto start = std::chrono::steady_clock::now();
  const TrainedTokenizer trained = train_byte_level_bpe(texts, {.vocab_size = 8000}, folder.path());
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(trained.vocab_size, 8000);
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  for (const std::string& text : texts) {
    const std::vector<TokenId> ids = tokenizer.encode(text, false);
    EXPECT_EQ(tokenizer.decode(ids, false), text);
    std::cout << text.size() << " bytes, " << ids.size() << " tokens\n";
  }
  std::cout << "8,000 entries learnt in " << taken.count() << " s\n";
}

}  // namespace
}  // namespace zeroth::text
