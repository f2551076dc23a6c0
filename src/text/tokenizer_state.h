#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "text/added_tokens.h"
#include "text/bpe.h"
#include "text/decoder.h"
#include "text/normalizer.h"
#include "text/post_processor.h"
#include "text/pre_tokenizer.h"
#include "text/tokenizer.h"

namespace zeroth::text {

// A tokenizer put together: everything that encoding and decoding need, and nothing of the files.
struct Tokenizer::State {
  explicit State(Bpe model) : bpe(std::move(model)) {}

  Bpe bpe;
  TokenTable added;                     // added tokens that the model's vocabulary lacks
  AddedTokenMatcher raw_tokens;         // looked for in the text as it comes
  AddedTokenMatcher normalized_tokens;  // looked for after normalisation
  std::unordered_set<TokenId> special;
  Normalizer normalizer;
  PreTokenizer pre_tokenizer;
  Decoder decoder;
  Surroundings around;
  std::optional<TokenId> bos, eos, pad;
  bool has_chat_template = false;
  std::vector<AddedToken> new_tokens;  // those that no file has, or not as special ones
  std::int64_t num_new = 0;            // of these, with ids of their own

  [[nodiscard]] TokenId find(std::string_view token) const noexcept;
  [[nodiscard]] std::string_view token(TokenId id) const noexcept;
  [[nodiscard]] bool contains(TokenId id) const noexcept;

  [[nodiscard]] static std::unique_ptr<State> load(const std::filesystem::path& folder,
                                                   const NewTokens& tokens);
};

}  // namespace zeroth::text
