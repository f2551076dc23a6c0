#include "text/tokenizer.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "text/tokenizer_state.h"
#include "text/utf8.h"
#include <fmt/format.h>

namespace zeroth::text {
namespace {

constexpr std::array<const char*, 8> kFiles = {"tokenizer.json",
                                               "tokenizer_config.json",
                                               "special_tokens_map.json",
                                               "added_tokens.json",
                                               "vocab.json",
                                               "merges.txt",
                                               "tokenizer.model",
                                               "chat_template.jinja"};

// One call of encode(): added tokens are cut out of the raw text, the rest is normalised, looked
// through again, cut into pieces, and merged.
class Encoding {
 public:
  explicit Encoding(const Tokenizer::State& state) : state_(state), merger_(state.bpe.merges()) {}

  std::vector<TokenId> run(std::string_view text) {
    for (const AddedTokenMatcher::Part& part : state_.raw_tokens.split(text)) {
      if (part.id != kNoToken) {
        ids_.push_back(part.id);
      } else {
        add_raw(part.text, part.text.data() == text.data());
      }
    }
    return std::move(ids_);
  }

 private:
  void add_raw(std::string_view text, bool at_start) {
    std::string normalized(text);
    if (state_.normalizer) {
      state_.normalizer(normalized);
    }
    for (const AddedTokenMatcher::Part& part : state_.normalized_tokens.split(normalized)) {
      if (part.id != kNoToken) {
        ids_.push_back(part.id);
      } else {
        add_normalized(part.text, at_start && part.text.data() == normalized.data());
      }
    }
  }

  void add_normalized(std::string_view text, bool at_start) {
    Pieces pieces(std::string(text), at_start);
    if (state_.pre_tokenizer) {
      state_.pre_tokenizer(pieces);
    }
    for (const Span& span : pieces.spans()) {
      state_.bpe.encode(pieces[span], merger_, symbols_, ids_);
    }
  }

  const Tokenizer::State& state_;
  PairMerger merger_;
  std::vector<TokenId> symbols_;
  std::vector<TokenId> ids_;
};

}  // namespace

Tokenizer::Tokenizer(std::unique_ptr<State> state) : state_(std::move(state)) {
}

Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

Tokenizer Tokenizer::load(const std::filesystem::path& folder, const NewTokens& tokens) {
  return Tokenizer(State::load(folder, tokens));
}

std::vector<TokenId> Tokenizer::encode(std::string_view text, bool add_special_tokens) const {
  if (const auto bad = first_invalid_utf8(text)) {
    throw Error(ErrorKind::kData,
                fmt::format("a text is not valid UTF-8 at its byte {} (0x{:02X}).\n"
                            "  Convert the data to UTF-8 first.",
                            *bad,
                            static_cast<unsigned char>(text[*bad])));
  }
  std::vector<TokenId> ids = Encoding(*state_).run(text);
  if (add_special_tokens) {
    ids.insert(ids.begin(), state_->around.before.begin(), state_->around.before.end());
    ids.insert(ids.end(), state_->around.after.begin(), state_->around.after.end());
  }
  return ids;
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  std::vector<std::string> tokens;
  tokens.reserve(ids.size());
  for (const TokenId id : ids) {
    if (state_->contains(id) && !(skip_special_tokens && is_special(id))) {
      tokens.emplace_back(state_->token(id));
    }
  }
  if (!state_->decoder) {
    return join(tokens, " ");
  }
  state_->decoder(tokens);
  return join(tokens, "");
}

std::vector<TokenId> Tokenizer::prefix_ids() const {
  return state_->around.before;
}

std::int64_t Tokenizer::vocab_size() const {
  return static_cast<std::int64_t>(state_->bpe.vocabulary().size() + state_->added.size());
}

TokenId Tokenizer::max_id() const {
  return std::max(state_->bpe.vocabulary().max_id(), state_->added.max_id());
}

std::int64_t Tokenizer::num_new() const {
  return state_->num_new;
}

std::optional<TokenId> Tokenizer::id_of(std::string_view token) const {
  const TokenId id = state_->find(token);
  return id == kNoToken ? std::nullopt : std::optional(id);
}

std::string Tokenizer::token_of(TokenId id) const {
  return std::string(state_->token(id));
}

std::optional<TokenId> Tokenizer::bos_id() const {
  return state_->bos;
}

std::optional<TokenId> Tokenizer::eos_id() const {
  return state_->eos;
}

std::optional<TokenId> Tokenizer::pad_id() const {
  return state_->pad;
}

bool Tokenizer::is_special(TokenId id) const {
  return state_->special.contains(id);
}

bool Tokenizer::has_chat_template() const {
  return state_->has_chat_template;
}

std::vector<std::filesystem::path> Tokenizer::files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const char* name : kFiles) {
    if (std::filesystem::exists(folder / name)) {
      files.push_back(folder / name);
    }
  }
  return files;
}

}  // namespace zeroth::text
