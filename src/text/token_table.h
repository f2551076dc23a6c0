#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace zeroth::text {

inline constexpr TokenId kNoToken = -1;

// Tokens by id and ids by token. All spellings lie in one string.
class TokenTable {
 public:
  void reserve(std::size_t num_tokens, std::size_t num_bytes);

  enum class Added { kNew, kSame, kConflict };
  // kSame where `token` has this id already; kConflict, and no change, where the token has another
  // id or the id another token.
  Added add(std::string_view token, TokenId id);

  [[nodiscard]] TokenId find(std::string_view token) const noexcept;  // kNoToken if absent
  // The same for many at once, several times as fast: what one look-up waits for, the others fetch
  // meanwhile.
  void find_all(std::span<const std::string_view> tokens, std::span<TokenId> ids) const;
  [[nodiscard]] std::string_view token(TokenId id) const noexcept;  // empty for a gap
  [[nodiscard]] bool contains(TokenId id) const noexcept;

  [[nodiscard]] std::size_t size() const noexcept { return num_tokens_; }

  [[nodiscard]] TokenId max_id() const noexcept { return static_cast<TokenId>(by_id_.size()) - 1; }

 private:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

  struct Spelling {
    std::uint32_t begin = 0;
    std::uint32_t length = kAbsent;
  };

  struct Slot {
    std::uint32_t hash = 0;
    TokenId id = kNoToken;
  };

  void grow(std::size_t num_tokens);
  [[nodiscard]] std::size_t slot_of(std::string_view token, std::uint32_t hash) const noexcept;

  std::string spellings_;
  std::vector<Spelling> by_id_;
  std::vector<Slot> slots_;
  std::size_t num_tokens_ = 0;
};

}  // namespace zeroth::text
