#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "text/added_tokens.h"
#include "text/bpe.h"

namespace zeroth::text {

// tokenizer.json, read but not yet put together. Components stay documents (null where absent).
struct TokenizerFile {
  std::vector<AddedToken> added_tokens;
  Json normalizer, pre_tokenizer, post_processor, decoder;
  Bpe bpe;
};

// kFormat and kNotSupported as for Tokenizer::load. `source` names the file in messages.
[[nodiscard]] TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& source);

// What tokenizer_config.json, special_tokens_map.json and chat_template.jinja add.
struct TokenizerConfig {
  struct NamedToken {
    std::string content;
    std::string source;  // "tokenizer_config.json: eos_token"
  };

  std::optional<NamedToken> bos, eos, pad;
  bool eos_is_named = false;             // also by null: then none is to be guessed
  std::vector<AddedToken> added_tokens;  // added_tokens_decoder
  bool has_chat_template = false;
};

[[nodiscard]] TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder);

}  // namespace zeroth::text
