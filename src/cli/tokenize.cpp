#include <cstdio>
#include <iostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/model_names.h"
#include "config/resolve.h"
#include "text/tokenizer.h"
#include <fmt/format.h>

namespace zeroth::cli {
namespace {

constexpr auto kInput = "standard input";

[[noreturn]] void refuse(std::size_t line, const std::string& problem) {
  throw Error(ErrorKind::kData, fmt::format("{}:{}: {}", kInput, line, problem));
}

Json encoded(const text::Tokenizer& tokenizer,
             const Json& value,
             std::size_t line,
             bool add_special_tokens) {
  if (!value.is_string()) {
    refuse(line,
           fmt::format("a JSON string is expected, not {} {}", type_name(value), value.dump()));
  }
  return tokenizer.encode(value.get_ref<const std::string&>(), add_special_tokens);
}

text::TokenId token_id(const text::Tokenizer& tokenizer, const Json& value, std::size_t line) {
  const bool is_id = value.is_number_integer() && value.get<std::int64_t>() >= 0 &&
                     value.get<std::int64_t>() <= tokenizer.max_id();
  if (!is_id) {
    refuse(line,
           fmt::format(
               "{} is not a token id; they go from 0 to {}", value.dump(), tokenizer.max_id()));
  }
  return value.get<text::TokenId>();
}

Json decoded(const text::Tokenizer& tokenizer,
             const Json& value,
             std::size_t line,
             bool skip_special_tokens) {
  if (!value.is_array()) {
    refuse(line,
           fmt::format(
               "a JSON array of token ids is expected, not {} {}", type_name(value), value.dump()));
  }
  std::vector<text::TokenId> ids;
  for (const Json& id : value) {
    ids.push_back(token_id(tokenizer, id, line));
  }
  return tokenizer.decode(ids, skip_special_tokens);
}

void write_line(const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() &&
                       std::fputc('\n', stdout) != EOF;
  // A reader that waits for this answer before it asks again must get it; a file need not be
  // flushed a line.
  const bool flushed = std::cin.rdbuf()->in_avail() > 0 || std::fflush(stdout) == 0;
  if (!written || !flushed) {
    throw Error(ErrorKind::kDisk, "cannot write to standard output");
  }
}

}  // namespace

int run_tokenize(Arguments arguments) {
  config::RunConfig config = config::resolve(config::Command::kTokenize, arguments, {});
  find_models(config);
  const text::Tokenizer tokenizer = text::Tokenizer::load(
      config.model.model_name_or_path,
      {.plain = config.model.add_tokens, .special = config.model.add_special_tokens});
  std::ios::sync_with_stdio(false);
  std::string text;
  for (std::size_t line = 1; std::getline(std::cin, text); ++line) {
    const Json value = parse_json(text, kInput, ErrorKind::kData, line);
    const Json answer = config.decode
                            ? decoded(tokenizer, value, line, config.generation.skip_special_tokens)
                            : encoded(tokenizer, value, line, !config.no_special_tokens);
    write_line(answer.dump());
  }
  return 0;
}

}  // namespace zeroth::cli
