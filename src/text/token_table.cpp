#include "text/token_table.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/check.h"

namespace zeroth::text {
namespace {

std::uint32_t hash_of(std::string_view token) noexcept {
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(token));
}

}  // namespace

void TokenTable::reserve(std::size_t num_tokens, std::size_t num_bytes) {
  spellings_.reserve(num_bytes);
  by_id_.reserve(num_tokens);
  grow(num_tokens);
}

void TokenTable::grow(std::size_t num_tokens) {
  const std::size_t num_slots = std::bit_ceil(2 * num_tokens + 2);
  if (num_slots <= slots_.size()) {
    return;
  }
  std::vector<Slot> old(num_slots);
  old.swap(slots_);
  for (const Slot& slot : old) {
    if (slot.id != kNoToken) {
      slots_[slot_of(token(slot.id), slot.hash)] = slot;
    }
  }
}

std::size_t TokenTable::slot_of(std::string_view wanted, std::uint32_t hash) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t position = hash & mask;
  while (slots_[position].id != kNoToken &&
         (slots_[position].hash != hash || token(slots_[position].id) != wanted)) {
    position = (position + 1) & mask;
  }
  return position;
}

TokenTable::Added TokenTable::add(std::string_view token, TokenId id) {
  grow(num_tokens_ + 1);
  const std::uint32_t hash = hash_of(token);
  Slot& slot = slots_[slot_of(token, hash)];
  if (slot.id == id) {
    return Added::kSame;
  }
  if (slot.id != kNoToken || contains(id)) {
    return Added::kConflict;
  }
  const auto index = static_cast<std::size_t>(id);
  if (index >= by_id_.size()) {
    by_id_.resize(index + 1);
  }
  ZEROTH_CHECK(spellings_.size() + token.size() < kAbsent,
               "the spellings of all tokens exceed 4 GiB");
  by_id_[index] = {static_cast<std::uint32_t>(spellings_.size()),
                   static_cast<std::uint32_t>(token.size())};
  spellings_ += token;
  slot = {hash, id};
  ++num_tokens_;
  return Added::kNew;
}

TokenId TokenTable::find(std::string_view token) const noexcept {
  return slots_.empty() ? kNoToken : slots_[slot_of(token, hash_of(token))].id;
}

void TokenTable::find_all(std::span<const std::string_view> tokens, std::span<TokenId> ids) const {
  ZEROTH_CHECK_EQ(tokens.size(), ids.size(), "a place for each id");
  if (slots_.empty()) {
    std::fill(ids.begin(), ids.end(), kNoToken);
    return;
  }
  const std::size_t mask = slots_.size() - 1;
  std::vector<std::uint32_t> hashes(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    hashes[i] = hash_of(tokens[i]);
    __builtin_prefetch(&slots_[hashes[i] & mask]);
  }
  for (const std::uint32_t hash : hashes) {
    const TokenId id = slots_[hash & mask].id;
    __builtin_prefetch(&by_id_[static_cast<std::size_t>(std::max(id, 0))]);
  }
  for (const std::uint32_t hash : hashes) {
    __builtin_prefetch(token(slots_[hash & mask].id).data());
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    ids[i] = slots_[slot_of(tokens[i], hashes[i])].id;
  }
}

std::string_view TokenTable::token(TokenId id) const noexcept {
  if (!contains(id)) {
    return {};
  }
  const Spelling& spelling = by_id_[static_cast<std::size_t>(id)];
  return std::string_view(spellings_).substr(spelling.begin, spelling.length);
}

bool TokenTable::contains(TokenId id) const noexcept {
  return id >= 0 && static_cast<std::size_t>(id) < by_id_.size() &&
         by_id_[static_cast<std::size_t>(id)].length != kAbsent;
}

}  // namespace zeroth::text
