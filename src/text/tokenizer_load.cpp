#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "text/tokenizer_file.h"
#include "text/tokenizer_state.h"
#include <fmt/format.h>

namespace zeroth::text {
namespace {

using State = Tokenizer::State;

// End tokens by the names that model families give them, for folders whose configuration names
// none.
constexpr std::array<std::string_view, 7> kEndTokens = {
    "</s>", "<|endoftext|>", "<|end_of_text|>", "<eos>", "<|im_end|>", "<|eot_id|>", "<|end|>"};

void require_tokenizer_json(const std::filesystem::path& folder) {
  if (std::filesystem::exists(folder / "tokenizer.json")) {
    return;
  }
  for (const char* older : {"tokenizer.model", "vocab.json"}) {
    if (std::filesystem::exists(folder / older)) {
      throw Error(
          ErrorKind::kNotSupported,
          fmt::format(
              "{} holds {} but no tokenizer.json, and only the latter is read.\n"
              "  Convert it once with Transformers: "
              "AutoTokenizer.from_pretrained(FOLDER, use_fast=True).save_pretrained(FOLDER)",
              folder.string(),
              older));
    }
  }
  throw Error(
      ErrorKind::kModel,
      fmt::format(
          "{} has no tokenizer.json.\n  Copy it from where the model came from, or train one "
          "with zeroth train-tokenizer.",
          folder.string()));
}

// As Transformers does, tokenizer_config.json's description of an added token replaces the one in
// tokenizer.json.
void add_or_replace(std::vector<AddedToken>& tokens, const AddedToken& token) {
  const auto same = std::find_if(tokens.begin(), tokens.end(), [&](const AddedToken& other) {
    return other.content == token.content && other.id == token.id;
  });
  if (same != tokens.end()) {
    *same = token;
  } else {
    tokens.push_back(token);
  }
}

void index_added_token(State& state, const AddedToken& token, const std::string& source) {
  const TokenId known = state.bpe.vocabulary().find(token.content);
  const bool in_model = known == token.id;
  const bool clashes =
      (known != kNoToken || state.bpe.vocabulary().contains(token.id)) && !in_model;
  if (clashes ||
      (!in_model && state.added.add(token.content, token.id) == TokenTable::Added::kConflict)) {
    throw Error(
        ErrorKind::kFormat,
        fmt::format("{}: the added token \"{}\" has the id {}, but the token or the id is taken: "
                    "the id {} is \"{}\"",
                    source,
                    token.content,
                    token.id,
                    token.id,
                    state.token(token.id)));
  }
  if (token.special) {
    state.special.insert(token.id);
  }
  std::string spelling = token.content;
  if (token.normalized && state.normalizer) {
    state.normalizer(spelling);
  }
  (token.normalized ? state.normalized_tokens : state.raw_tokens).add(token, std::move(spelling));
}

// Hugging Face's tokenizers count on from the largest added id, or from the model's entries.
TokenId next_id(const State& state) {
  auto id = static_cast<TokenId>(state.bpe.vocabulary().size());
  while (state.contains(id)) {
    ++id;
  }
  return id;
}

// Those that cannot be meant.
void refuse_contradictions(const NewTokens& tokens) {
  for (const auto* contents : {&tokens.plain, &tokens.special}) {
    if (std::find(contents->begin(), contents->end(), "") != contents->end()) {
      throw Error(ErrorKind::kConfig, "a token to add is empty\n  Leave it out of the list.");
    }
  }
  for (const std::string& content : tokens.special) {
    if (std::find(tokens.plain.begin(), tokens.plain.end(), content) != tokens.plain.end()) {
      throw Error(ErrorKind::kConfig,
                  fmt::format("\"{}\" is to be added as a plain token and as a special one\n  Name "
                              "it in one of add_tokens and add_special_tokens.",
                              content));
    }
  }
}

// One that is there keeps its id; asked for as a special one, it becomes that.
void add_new_token(State& state, AddedToken token, const std::string& source) {
  token.id = state.find(token.content);
  if (token.id == kNoToken) {
    token.id = next_id(state);
    ++state.num_new;
  } else if (!token.special || state.special.contains(token.id)) {
    return;
  }
  if (state.added.find(token.content) == kNoToken) {
    index_added_token(state, token, source);
  }
  if (token.special) {
    state.special.insert(token.id);
  }
  state.new_tokens.push_back(std::move(token));
}

void add_new_tokens(State& state, const NewTokens& tokens, const std::string& source) {
  refuse_contradictions(tokens);
  for (const std::string& content : tokens.plain) {
    add_new_token(state, {.content = content, .normalized = true}, source);
  }
  for (const std::string& content : tokens.special) {
    add_new_token(state, {.content = content, .special = true}, source);
  }
}

// The id of a token that the configuration names; such a token is a special added token, wherever
// it stands.
std::optional<TokenId> named_id(State& state,
                                const std::optional<TokenizerConfig::NamedToken>& named,
                                const std::vector<AddedToken>& added,
                                const std::string& source) {
  if (!named) {
    return std::nullopt;
  }
  const TokenId id = state.find(named->content);
  if (id == kNoToken) {
    throw Error(ErrorKind::kModel,
                fmt::format("{} names \"{}\", which is no token of tokenizer.json.\n"
                            "  Add it to the tokenizer, or name one of its tokens.",
                            named->source,
                            named->content));
  }
  const bool is_added = std::any_of(
      added.begin(), added.end(), [&](const AddedToken& token) { return token.id == id; });
  if (!is_added) {
    index_added_token(state, {.id = id, .content = named->content, .special = true}, source);
  }
  state.special.insert(id);
  return id;
}

// Only where exactly one candidate is a special token; else the caller asks for one by name.
std::optional<TokenId> guessed_end_token(const State& state) {
  std::optional<TokenId> guess;
  for (const std::string_view name : kEndTokens) {
    const TokenId id = state.find(name);
    if (id != kNoToken && state.special.contains(id)) {
      if (guess) {
        return std::nullopt;
      }
      guess = id;
    }
  }
  return guess;
}

void check_surroundings(const State& state, const std::string& source) {
  for (const auto* ids : {&state.around.before, &state.around.after}) {
    for (const TokenId id : *ids) {
      if (!state.contains(id)) {
        throw Error(
            ErrorKind::kFormat,
            fmt::format("{}: post_processor adds the id {}, which is no token", source, id));
      }
    }
  }
}

void build_components(State& state, const TokenizerFile& file, const std::string& source) {
  if (!file.normalizer.is_null()) {
    state.normalizer = parse_normalizer(file.normalizer, source + ": normalizer");
  }
  if (!file.pre_tokenizer.is_null()) {
    state.pre_tokenizer = parse_pre_tokenizer(file.pre_tokenizer, source + ": pre_tokenizer");
  }
  if (!file.post_processor.is_null()) {
    state.around = parse_post_processor(file.post_processor, source + ": post_processor");
  }
  if (!file.decoder.is_null()) {
    state.decoder = parse_decoder(file.decoder, source + ": decoder");
  }
}

}  // namespace

TokenId State::find(std::string_view token) const noexcept {
  const TokenId id = bpe.vocabulary().find(token);
  return id != kNoToken ? id : added.find(token);
}

std::string_view State::token(TokenId id) const noexcept {
  return bpe.vocabulary().contains(id) ? bpe.vocabulary().token(id) : added.token(id);
}

bool State::contains(TokenId id) const noexcept {
  return bpe.vocabulary().contains(id) || added.contains(id);
}

std::unique_ptr<State> State::load(const std::filesystem::path& folder, const NewTokens& tokens) {
  require_tokenizer_json(folder);
  const std::string source = (folder / "tokenizer.json").string();
  const std::string text = read_file(folder / "tokenizer.json", ErrorKind::kModel);
  TokenizerFile file = parse_tokenizer_file(text, source);
  const TokenizerConfig config = read_tokenizer_config(folder);
  for (const AddedToken& token : config.added_tokens) {
    add_or_replace(file.added_tokens, token);
  }
  auto state = std::make_unique<State>(std::move(file.bpe));
  build_components(*state, file, source);
  for (const AddedToken& token : file.added_tokens) {
    index_added_token(*state, token, source);
  }
  add_new_tokens(*state, tokens, source);
  state->bos = named_id(*state, config.bos, file.added_tokens, source);
  state->eos = named_id(*state, config.eos, file.added_tokens, source);
  state->pad = named_id(*state, config.pad, file.added_tokens, source);
  if (!config.eos_is_named) {
    state->eos = guessed_end_token(*state);
  }
  check_surroundings(*state, source);
  state->has_chat_template = config.has_chat_template;
  return state;
}

}  // namespace zeroth::text
