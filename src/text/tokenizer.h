#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/new_tokens.h"

namespace zeroth::text {

using TokenId = std::int32_t;

// A tokenizer.json (Hugging Face tokenizers, version 1.0) with a BPE model: byte-level (GPT-2,
// Llama 3, Qwen) or SentencePiece style with byte fallback (Llama 2, Mistral, Gemma). Immutable;
// safe to share between threads.
class Tokenizer {
 public:
  struct State;  // tokenizer_state.h

  // `folder` holds tokenizer.json and usually tokenizer_config.json / special_tokens_map.json.
  // Errors: kModel (missing files), kFormat (broken), kNotSupported (a component that is not built,
  // by name and value). `tokens` are added to those of the files.
  [[nodiscard]] static Tokenizer load(const std::filesystem::path& folder,
                                      const NewTokens& tokens = {});

  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  // Text to ids. With special tokens, the post-processor's template is applied (BOS and the like).
  // Added tokens inside the text ("<|eot_id|>") become their ids, as in Hugging Face tokenizers.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, bool add_special_tokens) const;
  // Ids to text; bytes that are not UTF-8 become U+FFFD.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const;

  // What the post-processor puts before (and after) a sequence: usually the BOS id, or nothing.
  [[nodiscard]] std::vector<TokenId> prefix_ids() const;

  [[nodiscard]] std::int64_t vocab_size() const;  // entries, added tokens included
  [[nodiscard]] TokenId max_id() const;
  [[nodiscard]] std::int64_t num_new() const;  // of load()'s tokens, those that the files lack
  [[nodiscard]] std::optional<TokenId> id_of(std::string_view token) const;
  [[nodiscard]] std::string token_of(TokenId id) const;  // as spelt in the file; empty for a gap
  [[nodiscard]] std::optional<TokenId> bos_id()
      const;  // from tokenizer_config.json / special_tokens_map.json
  [[nodiscard]] std::optional<TokenId> eos_id() const;
  [[nodiscard]] std::optional<TokenId> pad_id() const;
  // Special added tokens, e.g. to stop generation at.
  [[nodiscard]] bool is_special(TokenId id) const;
  // True where the folder brings a chat template (tokenizer_config.json or chat_template.jinja).
  [[nodiscard]] bool has_chat_template() const;

  // The files of `folder` that make up the tokenizer, to be copied along with a result.
  [[nodiscard]] static std::vector<std::filesystem::path> files_in(
      const std::filesystem::path& folder);

 private:
  explicit Tokenizer(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace zeroth::text
