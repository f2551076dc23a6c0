#include "text/pair_learner.h"

#include <algorithm>

#include "text/pair_merger.h"

namespace zeroth::text {
namespace {

PairLearner::Pair pair_of(std::uint64_t key) {
  return {static_cast<TokenId>(key >> 32), static_cast<TokenId>(key & 0xFFFFFFFF)};
}

}  // namespace

bool PairLearner::Candidate::operator<(const Candidate& other) const noexcept {
  return count != other.count ? count < other.count : pair > other.pair;
}

PairLearner::PairLearner(std::vector<Word> words) : words_(std::move(words)) {
  for (std::size_t w = 0; w < words_.size(); ++w) {
    const Word& word = words_[w];
    for (std::size_t i = 1; i < word.tokens.size(); ++i) {
      change(word.tokens[i - 1], word.tokens[i], word.count, static_cast<std::int32_t>(w));
    }
  }
  for (const auto& [key, occurrences] : pairs_) {
    queue_.push({occurrences.count, pair_of(key)});
  }
  grown_.clear();
}

void PairLearner::change(TokenId left, TokenId right, std::int64_t by, std::int32_t word) {
  const std::uint64_t key = MergeTable::key(left, right);
  Occurrences& occurrences = pairs_[key];
  occurrences.count += by;
  if (by > 0) {
    if (occurrences.words.empty() || occurrences.words.back() != word) {
      occurrences.words.push_back(word);
    }
    grown_.insert(key);
  }
}

PairLearner::Pair PairLearner::best_pair(std::int64_t min_count) {
  while (!queue_.empty()) {
    const Candidate top = queue_.top();
    const auto found = pairs_.find(MergeTable::key(top.pair.first, top.pair.second));
    const std::int64_t count = found == pairs_.end() ? 0 : found->second.count;
    if (count == top.count && count >= std::max(min_count, std::int64_t{1})) {
      return top.pair;
    }
    queue_.pop();
    if (count > 0 && count < top.count) {
      queue_.push({count, top.pair});
    }
  }
  return {kNoToken, kNoToken};
}

void PairLearner::merge(Pair pair, TokenId joined) {
  const auto found = pairs_.find(MergeTable::key(pair.first, pair.second));
  if (found == pairs_.end()) {
    return;
  }
  std::vector<std::int32_t> words = std::move(found->second.words);
  pairs_.erase(found);
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  grown_.clear();
  for (const std::int32_t word : words) {
    merge_in_word(word, pair, joined);
  }
  pairs_.erase(
      MergeTable::key(pair.first, pair.second));  // in "aaa" the overlap has counted it down
  for (const std::uint64_t key : grown_) {
    if (const auto grown = pairs_.find(key); grown != pairs_.end() && grown->second.count > 0) {
      queue_.push({grown->second.count, pair_of(key)});
    }
  }
}

// Walks the word once, joining as it goes, so that the neighbour before is already joined where it
// should be.
void PairLearner::merge_in_word(std::int32_t index, Pair pair, TokenId joined) {
  Word& word = words_[static_cast<std::size_t>(index)];
  const std::vector<TokenId>& old = word.tokens;
  std::vector<TokenId> merged;
  merged.reserve(old.size());
  for (std::size_t i = 0; i < old.size(); ++i) {
    if (i + 1 == old.size() || old[i] != pair.first || old[i + 1] != pair.second) {
      merged.push_back(old[i]);
      continue;
    }
    if (!merged.empty()) {
      change(merged.back(), pair.first, -word.count, index);
      change(merged.back(), joined, word.count, index);
    }
    if (i + 2 < old.size()) {
      change(pair.second, old[i + 2], -word.count, index);
      change(joined, old[i + 2], word.count, index);
    }
    merged.push_back(joined);
    ++i;
  }
  word.tokens = std::move(merged);
}

}  // namespace zeroth::text
