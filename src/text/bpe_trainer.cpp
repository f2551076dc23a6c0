#include "text/bpe_trainer.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "text/added_tokens.h"
#include "text/byte_level.h"
#include "text/pair_learner.h"
#include "text/pre_tokenizer.h"
#include "text/utf8.h"
#include <fmt/format.h>

namespace zeroth::text {
namespace {

constexpr std::int64_t kNumBytes = 256;

// Contractions, words with the character before them, single digits, marks, line ends, spaces.
constexpr std::string_view kPattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

struct Learned {
  std::vector<std::string> special;
  std::vector<std::string> tokens;  // by id, as spelt in the file
  std::vector<std::string> merges;  // "left right"
};

std::vector<std::string> special_tokens_of(const TrainerSettings& settings) {
  std::vector<std::string> tokens = {settings.end_token, settings.pad_token};
  tokens.insert(
      tokens.end(), settings.more_special_tokens.begin(), settings.more_special_tokens.end());
  std::vector<std::string> unique;
  for (const std::string& token : tokens) {
    if (token.empty() || first_invalid_utf8(token)) {
      throw Error(ErrorKind::kConfig,
                  "a special token of the tokenizer to train is empty or not UTF-8");
    }
    if (std::find(unique.begin(), unique.end(), token) == unique.end()) {
      unique.push_back(token);  // the end token may pad too
    }
  }
  return unique;
}

void check_vocab_size(const TrainerSettings& settings, std::size_t num_special) {
  const std::int64_t least = kNumBytes + static_cast<std::int64_t>(num_special);
  if (settings.vocab_size < least) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("vocab_size {} has no room for the {} bytes and {} special tokens that every "
                    "byte-level tokenizer has.\n  Set it to {} or more.",
                    settings.vocab_size,
                    kNumBytes,
                    num_special,
                    least));
  }
}

using WordCounts = std::unordered_map<std::string, std::int64_t>;

void count_words(std::string_view text, const PreTokenizer& cut, WordCounts& counts) {
  Pieces pieces(std::string(text), false);
  cut(pieces);
  for (const Span& span : pieces.spans()) {
    ++counts[std::string(pieces[span])];
  }
}

// Special tokens in the texts are cut out first, as encoding will do: no merge can spell one.
WordCounts count_words(std::span<const std::string> texts,
                       const std::vector<std::string>& special) {
  AddedTokenMatcher matcher;
  for (const std::string& token : special) {
    matcher.add({.id = 0, .content = token, .special = true}, token);
  }
  const PreTokenizer cut = isolating_pre_tokenizer(Regex(kPattern, "the tokenizer to train"));
  WordCounts counts;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    if (const auto bad = first_invalid_utf8(texts[i])) {
      throw Error(
          ErrorKind::kData,
          fmt::format("text {} of the tokenizer's training data is not valid UTF-8 at its byte {}",
                      i,
                      *bad));
    }
    for (const AddedTokenMatcher::Part& part : matcher.split(texts[i])) {
      if (part.id == kNoToken) {
        count_words(part.text, cut, counts);
      }
    }
  }
  return counts;
}

PairLearner make_learner(const WordCounts& counts, TokenId first_byte) {
  std::vector<PairLearner::Word> words;
  words.reserve(counts.size());
  for (const auto& [text, count] : counts) {
    PairLearner::Word& word = words.emplace_back();
    word.count = count;
    for (const char byte : text) {
      word.tokens.push_back(first_byte + static_cast<unsigned char>(byte));
    }
  }
  return PairLearner(std::move(words));
}

Learned learn(std::span<const std::string> texts, const TrainerSettings& settings) {
  Learned learned{.special = special_tokens_of(settings), .tokens = {}, .merges = {}};
  check_vocab_size(settings, learned.special.size());
  learned.tokens = learned.special;
  for (unsigned byte = 0; byte < kNumBytes; ++byte) {
    learned.tokens.emplace_back(byte_character(static_cast<unsigned char>(byte)));
  }
  std::unordered_map<std::string, TokenId> ids;
  for (std::size_t id = 0; id < learned.tokens.size(); ++id) {
    ids.emplace(learned.tokens[id], static_cast<TokenId>(id));
  }
  PairLearner learner = make_learner(count_words(texts, learned.special),
                                     static_cast<TokenId>(learned.special.size()));
  while (static_cast<std::int64_t>(learned.tokens.size()) < settings.vocab_size) {
    const PairLearner::Pair pair = learner.best_pair(settings.min_count);
    if (pair.first == kNoToken) {
      break;
    }
    const std::string& left = learned.tokens[static_cast<std::size_t>(pair.first)];
    const std::string& right = learned.tokens[static_cast<std::size_t>(pair.second)];
    std::string joined = left + right;
    learned.merges.push_back(left + " " + right);
    // Two different pairs can spell the same token.
    const auto [entry, is_new] = ids.emplace(joined, static_cast<TokenId>(learned.tokens.size()));
    learner.merge(pair, entry->second);
    if (is_new) {
      learned.tokens.push_back(std::move(joined));
    }
  }
  return learned;
}

Json added_token(const std::string& content) {
  return {{"content", content},
          {"single_word", false},
          {"lstrip", false},
          {"rstrip", false},
          {"normalized", false},
          {"special", true}};
}

Json byte_level(bool add_prefix_space) {
  return {{"type", "ByteLevel"},
          {"add_prefix_space", add_prefix_space},
          {"trim_offsets", false},
          {"use_regex", false}};
}

Json model_json(const Learned& learned) {
  Json vocab = Json::object();
  auto& entries =
      vocab.get_ref<Json::object_t&>();  // operator[] would search all entries each time
  for (std::size_t id = 0; id < learned.tokens.size(); ++id) {
    entries.emplace_back(learned.tokens[id], id);
  }
  return {{"type", "BPE"},
          {"dropout", nullptr},
          {"unk_token", nullptr},
          {"continuing_subword_prefix", nullptr},
          {"end_of_word_suffix", nullptr},
          {"fuse_unk", false},
          {"byte_fallback", false},
          {"ignore_merges", false},
          {"vocab", std::move(vocab)},
          {"merges", learned.merges}};
}

Json tokenizer_json(const Learned& learned) {
  Json added = Json::array();
  for (std::size_t id = 0; id < learned.special.size(); ++id) {
    Json token = {{"id", id}};
    token.update(added_token(learned.special[id]));
    added.push_back(std::move(token));
  }
  const Json split = {{"type", "Split"},
                      {"pattern", {{"Regex", kPattern}}},
                      {"behavior", "Isolated"},
                      {"invert", false}};
  const Json pre_tokenizer = {{"type", "Sequence"},
                              {"pretokenizers", Json::array({split, byte_level(false)})}};
  return {{"version", "1.0"},
          {"truncation", nullptr},
          {"padding", nullptr},
          {"added_tokens", std::move(added)},
          {"normalizer", nullptr},
          {"pre_tokenizer", pre_tokenizer},
          {"post_processor", nullptr},
          {"decoder", byte_level(false)},
          {"model", model_json(learned)}};
}

Json config_json(const Learned& learned, const TrainerSettings& settings) {
  Json decoder = Json::object();
  for (std::size_t id = 0; id < learned.special.size(); ++id) {
    decoder[std::to_string(id)] = added_token(learned.special[id]);
  }
  return {{"added_tokens_decoder", std::move(decoder)},
          {"bos_token", nullptr},
          {"clean_up_tokenization_spaces", false},
          {"eos_token", settings.end_token},
          {"model_max_length", settings.model_max_length},
          {"pad_token", settings.pad_token},
          {"tokenizer_class", "PreTrainedTokenizerFast"},
          {"unk_token", nullptr}};
}

}  // namespace

TrainedTokenizer train_byte_level_bpe(std::span<const std::string> texts,
                                      const TrainerSettings& settings,
                                      const std::filesystem::path& folder) {
  const Learned learned = learn(texts, settings);
  std::filesystem::create_directories(folder);
  TrainedTokenizer result{.vocab_size = static_cast<std::int64_t>(learned.tokens.size()),
                          .num_merges = static_cast<std::int64_t>(learned.merges.size()),
                          .files = {}};
  const auto write = [&](const char* name, const Json& content) {
    write_file_atomically(folder / name, content.dump(2) + "\n");
    result.files.push_back(folder / name);
  };
  write("tokenizer.json", tokenizer_json(learned));
  write("tokenizer_config.json", config_json(learned, settings));
  write("special_tokens_map.json",
        {{"eos_token", settings.end_token}, {"pad_token", settings.pad_token}});
  return result;
}

}  // namespace zeroth::text
