#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/flat_map.h"
#include "text/pair_merger.h"
#include "text/token_table.h"

namespace zeroth::text {

struct BpeSettings {
  std::string unk_token;  // empty: characters without a token vanish
  bool fuse_unk = false;  // neighbouring unknown characters become one unk
  bool byte_fallback =
      false;  // an unknown character becomes its bytes, <0x0A>, where all of them are tokens
  bool ignore_merges = false;  // a piece that is a token is that token, however it would merge
};

// Byte-pair encoding of one piece of text: its characters become tokens, and these are merged.
class Bpe {
 public:
  using MergeRule = std::pair<std::string_view, std::string_view>;

  // `where` names the file in messages. kFormat where a merge names a token that does not exist.
  Bpe(BpeSettings settings,
      TokenTable vocabulary,
      const std::vector<MergeRule>& merges,
      const std::string& where);

  [[nodiscard]] const TokenTable& vocabulary() const noexcept { return vocabulary_; }

  [[nodiscard]] const MergeTable& merges() const noexcept { return merges_; }

  // Appends the piece's ids. `merger` belongs to merges(); `symbols` is memory to be used again.
  void encode(std::string_view piece,
              PairMerger& merger,
              std::vector<TokenId>& symbols,
              std::vector<TokenId>& ids) const;

 private:
  void index_characters();
  void add_merges(std::span<const MergeRule> merges,
                  std::size_t first_rank,
                  const std::string& where);
  void note_border(const MergeRule& merge);
  [[nodiscard]] TokenId character_id(std::string_view character) const noexcept;
  void append_symbols(std::string_view piece, std::vector<TokenId>& symbols) const;
  bool append_bytes(std::string_view character, std::vector<TokenId>& symbols) const;
  [[nodiscard]] bool may_merge_across(TokenId left, TokenId right) const noexcept;

  BpeSettings settings_;
  TokenTable vocabulary_;
  MergeTable merges_;
  TokenId last_made_ = kNoToken;  // by the merge added last
  TokenId unk_ = kNoToken;
  std::vector<TokenId> byte_tokens_;       // 256, or empty without byte fallback
  std::vector<TokenId> character_tokens_;  // by code point, for the basic plane
  // See [Note: cuts]: tokens of characters that some merge has on the two sides of its border.
  std::optional<FlatMap<bool>> borders_;
};

}  // namespace zeroth::text
