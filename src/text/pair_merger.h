#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/flat_map.h"
#include "text/token_table.h"

namespace zeroth::text {

// Which pairs of neighbouring tokens become which token, and in which order.
class MergeTable {
 public:
  struct Merge {
    std::int32_t rank = 0;
    TokenId id = kNoToken;
  };

  explicit MergeTable(std::size_t num_merges) : merges_(num_merges) {}

  static std::uint64_t key(TokenId left, TokenId right) noexcept {
    return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
           static_cast<std::uint32_t>(right);
  }

  // Of a pair given twice the last merge counts.
  void add(TokenId left, TokenId right, Merge merge) {
    merges_.insert(key(left, right), {}) = merge;
  }

  void prefetch(TokenId left, TokenId right) const noexcept { merges_.prefetch(key(left, right)); }

  [[nodiscard]] const Merge* find(TokenId left, TokenId right) const noexcept {
    return merges_.find(key(left, right));
  }

 private:
  FlatMap<Merge> merges_;
};

// Applies merges to a row of tokens: the pair of lowest rank first, of equals the leftmost, until
// none is left. Keeps its memory from row to row. O(n log n).
class PairMerger {
 public:
  explicit PairMerger(const MergeTable& merges) : merges_(merges) {}

  // Appends what `tokens` (not empty) become.
  void merge(std::span<const TokenId> tokens, std::vector<TokenId>& out);

 private:
  struct Symbol {
    TokenId id = kNoToken;  // kNoToken: joined to the one before
    std::int32_t previous = -1;
    std::int32_t next = -1;
  };

  struct Candidate {
    std::int32_t rank = 0;
    std::int32_t left = 0;
    TokenId id = kNoToken;
  };

  static bool comes_later(const Candidate& a, const Candidate& b) noexcept;

  Symbol& at(std::int32_t index) { return symbols_[static_cast<std::size_t>(index)]; }

  void start(std::span<const TokenId> tokens);
  bool add_candidate(std::int32_t left);
  void push_candidate(std::int32_t left);
  Candidate pop_candidate();
  void join(const Candidate& candidate);

  const MergeTable& merges_;
  std::vector<Symbol> symbols_;
  std::vector<Candidate> heap_;
};

}  // namespace zeroth::text
