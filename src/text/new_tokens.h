#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace zeroth::text {

// Tokens that a tokenizer gets beside those of its files. One that it has already keeps its id, and
// becomes special where it is asked for as that; the others get the ids that follow, plain ones first, as Hugging Face's tokenizers give them.
struct NewTokens {
  std::vector<std::string> plain;
  std::vector<std::string> special;  // left out where special tokens are skipped in decoding

  [[nodiscard]] bool empty() const noexcept { return plain.empty() && special.empty(); }
};

// The text of `folder`/tokenizer.json with them in "added_tokens": what
// Tokenizer::load(folder, tokens) reads, as one file.
[[nodiscard]] std::string tokenizer_json_with(const std::filesystem::path& folder,
                                              const NewTokens& tokens);

}  // namespace zeroth::text
