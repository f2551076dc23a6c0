#pragma once

#include <cstdint>
#include <queue>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "text/token_table.h"

namespace zeroth::text {

// Learns byte-pair merges from counted words: the most frequent pair of neighbours becomes a token,
// again and again. Counts are kept up to date pair by pair, so that a merge costs what it changes.
// Of equally frequent pairs the one with the lowest ids is taken, which makes the result a function
// of the counts alone.
class PairLearner {
 public:
  using Pair = std::pair<TokenId, TokenId>;

  struct Word {
    std::vector<TokenId> tokens;
    std::int64_t count = 0;
  };

  explicit PairLearner(std::vector<Word> words);

  // The most frequent pair that occurs at least `min_count` times; (kNoToken, kNoToken) where none
  // is left.
  [[nodiscard]] Pair best_pair(std::int64_t min_count);
  // Joins all occurrences of `pair` into `joined`.
  void merge(Pair pair, TokenId joined);

 private:
  struct Occurrences {
    std::int64_t count = 0;
    std::vector<std::int32_t> words;  // in which it is; some perhaps twice, some no longer
  };

  struct Candidate {
    std::int64_t count = 0;
    Pair pair;
    bool operator<(const Candidate& other) const noexcept;  // less urgent
  };

  void change(TokenId left, TokenId right, std::int64_t by, std::int32_t word);
  void merge_in_word(std::int32_t word, Pair pair, TokenId joined);

  std::vector<Word> words_;
  std::unordered_map<std::uint64_t, Occurrences> pairs_;
  std::unordered_set<std::uint64_t> grown_;  // pairs to be queued again after a merge
  std::priority_queue<Candidate> queue_;     // counts may be outdated, never too low
};

}  // namespace zeroth::text
