#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/fields.h"
#include "text/token_table.h"

namespace zeroth::text {

// A token that is found in text as it stands, before anything is merged.
struct AddedToken {
  TokenId id = kNoToken;
  std::string content;
  bool single_word = false;  // only where no word character adjoins
  bool lstrip = false;       // takes the white space before it along
  bool rstrip = false;       // and after it
  bool normalized = false;   // looked for in normalised text rather than in the raw one
  bool special = false;      // left out by decode(..., skip_special_tokens)

  // Reads all members but the id.
  [[nodiscard]] static AddedToken parse(Fields& fields);
};

// Finds added tokens: at each place the longest, from left to right.
class AddedTokenMatcher {
 public:
  AddedTokenMatcher() = default;
  // `spelling` of each token is what stands in the text (normalised where the token is).
  void add(AddedToken token, std::string spelling);

  struct Part {
    std::string_view text;  // between the tokens, or what the token covers
    TokenId id = kNoToken;  // kNoToken: text
  };

  [[nodiscard]] std::vector<Part> split(std::string_view text) const;

 private:
  struct Match {
    std::size_t length = 0;
    const AddedToken* token = nullptr;
  };

  [[nodiscard]] Match longest_at(std::string_view text, std::size_t at) const;

  std::unordered_map<std::string, AddedToken> by_spelling_;
  // For each first byte the lengths of the spellings that begin with it, longest first.
  std::array<std::vector<std::size_t>, 256> lengths_;
};

}  // namespace zeroth::text
