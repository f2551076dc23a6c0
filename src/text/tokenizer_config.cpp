#include <algorithm>
#include <charconv>
#include <map>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "text/json_cursor.h"
#include "text/tokenizer_file.h"
#include <fmt/format.h>

namespace zeroth::text {
namespace {

using Tokens = std::map<std::string, Json>;  // members named ..._token

// A token is a string or an object with "content"; null and "" mean that there is none.
std::optional<std::string> content_of(const Json& token, const std::string& source) {
  if (token.is_null() || (token.is_string() && token.get<std::string>().empty())) {
    return std::nullopt;
  }
  if (token.is_string()) {
    return token.get<std::string>();
  }
  Fields fields(token, source);
  return fields.string("content");
}

AddedToken parse_decoder_entry(std::string_view id, const Json& entry, const std::string& where) {
  Fields fields(entry, where);
  AddedToken token = AddedToken::parse(fields);
  const auto [end, error] = std::from_chars(id.data(), id.data() + id.size(), token.id);
  if (error != std::errc() || end != id.data() + id.size() || token.id < 0) {
    throw Error(ErrorKind::kFormat, fmt::format("{}: the key should be a token's id", where));
  }
  return token;
}

void read_config_file(const std::filesystem::path& path, TokenizerConfig& config, Tokens& tokens) {
  const std::string text = read_file(path, ErrorKind::kModel);
  JsonCursor cursor(text, path.string());
  cursor.object("the tokenizer's configuration", [&](std::string_view key) {
    if (key == "bos_token" || key == "eos_token" || key == "pad_token") {
      tokens.insert_or_assign(std::string(key), cursor.value());
    } else if (key == "chat_template") {
      config.has_chat_template = config.has_chat_template || cursor.peek() != 'n';  // not null
      cursor.skip_value();
    } else if (key == "added_tokens_decoder" && cursor.peek() == '{') {
      cursor.object(key, [&](std::string_view id) {
        const std::string where =
            fmt::format("{}: added_tokens_decoder[\"{}\"]", path.string(), id);
        config.added_tokens.push_back(parse_decoder_entry(id, cursor.value(), where));
      });
    } else {
      cursor.skip_value();
    }
  });
  cursor.expect_end();
}

}  // namespace

TokenizerConfig read_tokenizer_config(const std::filesystem::path& folder) {
  TokenizerConfig config;
  config.has_chat_template = std::filesystem::exists(folder / "chat_template.jinja");
  for (const char* name : {"tokenizer_config.json", "special_tokens_map.json"}) {
    const std::filesystem::path path = folder / name;
    if (!std::filesystem::exists(path)) {
      continue;
    }
    Tokens tokens;
    read_config_file(path, config, tokens);
    for (const auto& [key, token] : tokens) {
      const std::string source = fmt::format("{}: {}", path.string(), key);
      auto& named = key == "bos_token" ? config.bos : key == "eos_token" ? config.eos : config.pad;
      const auto content = content_of(token, source);
      if (!named && content) {
        named = TokenizerConfig::NamedToken{*content, source};
      }
      config.eos_is_named = config.eos_is_named || key == "eos_token";
    }
  }
  return config;
}

}  // namespace zeroth::text
