#include "text/bpe.h"

#include <algorithm>

#include "base/error.h"
#include "text/utf8.h"
#include <fmt/format.h>

namespace zeroth::text {
namespace {

constexpr std::uint32_t kBasicPlane = 0x10000;

std::string byte_token(unsigned byte) {
  return fmt::format("<0x{:02X}>", byte);
}

bool is_byte_token(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.back() == '>';
}

std::string_view first_character(std::string_view token) {
  return token.substr(0, code_point_at(token, 0).length);
}

std::string_view last_character(std::string_view token) {
  return token.substr(token.size() - code_point_before(token, token.size()).length);
}

void require(TokenId id,
             std::string_view token,
             const Bpe::MergeRule& merge,
             const std::string& where) {
  if (id == kNoToken) {
    throw Error(
        ErrorKind::kFormat,
        fmt::format("{}: the merge of \"{}\" and \"{}\" needs the token \"{}\", which is not in "
                    "model.vocab; the file is damaged or was edited by hand",
                    where,
                    merge.first,
                    merge.second,
                    token));
  }
}

}  // namespace

Bpe::Bpe(BpeSettings settings,
         TokenTable vocabulary,
         const std::vector<MergeRule>& merges,
         const std::string& where)
    : settings_(std::move(settings)),
      vocabulary_(std::move(vocabulary)),
      merges_(merges.size()),
      borders_(std::in_place) {
  index_characters();
  constexpr std::size_t kBlock = 64;
  for (std::size_t begin = 0; begin < merges.size(); begin += kBlock) {
    add_merges(
        std::span(merges).subspan(begin, std::min(kBlock, merges.size() - begin)), begin, where);
  }
}

// A block at a time: a vocabulary is larger than the processor's caches, and single look-ups would
// wait for memory.
void Bpe::add_merges(std::span<const MergeRule> merges,
                     std::size_t first_rank,
                     const std::string& where) {
  std::vector<std::string_view> parts;
  for (const MergeRule& merge : merges) {
    parts.push_back(merge.first);
    parts.push_back(merge.second);
  }
  std::vector<TokenId> ids(parts.size());
  vocabulary_.find_all(parts, ids);
  for (std::size_t i = 0; i < merges.size(); ++i) {
    merges_.prefetch(ids[2 * i], ids[2 * i + 1]);
  }
  std::string joined;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    joined.assign(merges[i].first).append(merges[i].second);
    // Merges usually make tokens in the order of their ids; a guess that holds spares a look-up.
    const bool in_order = vocabulary_.token(last_made_ + 1) == joined;
    last_made_ = in_order ? last_made_ + 1 : vocabulary_.find(joined);
    require(ids[2 * i], merges[i].first, merges[i], where);
    require(ids[2 * i + 1], merges[i].second, merges[i], where);
    require(last_made_, joined, merges[i], where);
    merges_.add(
        ids[2 * i], ids[2 * i + 1], {static_cast<std::int32_t>(first_rank + i), last_made_});
    note_border(merges[i]);
  }
}

void Bpe::index_characters() {
  if (!settings_.unk_token.empty()) {
    unk_ = vocabulary_.find(settings_.unk_token);
  }
  for (unsigned byte = 0; settings_.byte_fallback && byte < 256; ++byte) {
    byte_tokens_.push_back(vocabulary_.find(byte_token(byte)));
  }
  character_tokens_.assign(kBasicPlane, kNoToken);
  for (TokenId id = 0; id <= vocabulary_.max_id(); ++id) {
    const std::string_view token = vocabulary_.token(id);
    if (!token.empty() && token.size() <= 3 && first_character(token).size() == token.size()) {
      character_tokens_[code_point_at(token, 0).value] = id;
    }
  }
}

// [Note: cuts] A piece can be megabytes long (SentencePiece style has no pre-tokenizer). Two
// neighbouring characters stay apart for ever if no merge has the one last in its left and the
// other first in its right part; so the piece may be cut there, and what is merged at a time is
// about a word. That argument needs merges of tokens made of characters: one over a byte token or
// unk switches cutting off.
void Bpe::note_border(const MergeRule& merge) {
  if (!borders_) {
    return;
  }
  for (const std::string_view part : {merge.first, merge.second}) {
    if (part.empty() || part == settings_.unk_token ||
        (settings_.byte_fallback && is_byte_token(part))) {
      borders_.reset();
      return;
    }
  }
  const TokenId left = character_id(last_character(merge.first));
  const TokenId right = character_id(first_character(merge.second));
  if (left != kNoToken && right != kNoToken) {
    borders_->insert(MergeTable::key(left, right), true);
  }
}

TokenId Bpe::character_id(std::string_view character) const noexcept {
  const std::uint32_t value = code_point_at(character, 0).value;
  return value < kBasicPlane ? character_tokens_[value] : vocabulary_.find(character);
}

bool Bpe::may_merge_across(TokenId left, TokenId right) const noexcept {
  return !borders_ || borders_->find(MergeTable::key(left, right)) != nullptr;
}

bool Bpe::append_bytes(std::string_view character, std::vector<TokenId>& symbols) const {
  const std::size_t before = symbols.size();
  for (const char byte : character) {
    const TokenId id =
        byte_tokens_.empty() ? kNoToken : byte_tokens_[static_cast<unsigned char>(byte)];
    if (id == kNoToken) {
      symbols.resize(before);
      return false;
    }
    symbols.push_back(id);
  }
  return true;
}

// As in Hugging Face tokenizers, bytes that follow an unk which is still open come before it.
void Bpe::append_symbols(std::string_view piece, std::vector<TokenId>& symbols) const {
  bool open_unk = false;
  const auto close_unk = [&] {
    if (open_unk) {
      symbols.push_back(unk_);
    }
    open_unk = false;
  };
  for (std::size_t at = 0; at < piece.size();) {
    const std::string_view character = piece.substr(at, code_point_at(piece, at).length);
    at += character.size();
    if (const TokenId id = character_id(character); id != kNoToken) {
      close_unk();
      symbols.push_back(id);
    } else if (!append_bytes(character, symbols) && unk_ != kNoToken) {
      if (!settings_.fuse_unk) {
        close_unk();
      }
      open_unk = true;
    }
  }
  close_unk();
}

void Bpe::encode(std::string_view piece,
                 PairMerger& merger,
                 std::vector<TokenId>& symbols,
                 std::vector<TokenId>& ids) const {
  if (settings_.ignore_merges) {
    if (const TokenId whole = vocabulary_.find(piece); whole != kNoToken) {
      ids.push_back(whole);
      return;
    }
  }
  symbols.clear();
  append_symbols(piece, symbols);
  std::size_t begin = 0;
  for (std::size_t end = 1; end <= symbols.size(); ++end) {
    if (end == symbols.size() || !may_merge_across(symbols[end - 1], symbols[end])) {
      merger.merge(std::span(symbols).subspan(begin, end - begin), ids);
      begin = end;
    }
  }
}

}  // namespace zeroth::text
