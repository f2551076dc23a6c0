#include "text/pair_merger.h"

#include <algorithm>
#include <limits>

#include "base/check.h"

namespace zeroth::text {

// For a heap with the lowest rank, then the leftmost, on top.
bool PairMerger::comes_later(const Candidate& a, const Candidate& b) noexcept {
  return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
}

void PairMerger::merge(std::span<const TokenId> tokens, std::vector<TokenId>& out) {
  if (tokens.size() == 1) {
    out.push_back(tokens[0]);
    return;
  }
  start(tokens);
  while (!heap_.empty()) {
    join(pop_candidate());
  }
  for (std::int32_t i = 0; i >= 0; i = at(i).next) {
    out.push_back(at(i).id);
  }
}

void PairMerger::start(std::span<const TokenId> tokens) {
  ZEROTH_CHECK(tokens.size() < std::numeric_limits<std::int32_t>::max(),
               "a piece of {} symbols",
               tokens.size());
  const auto count = static_cast<std::int32_t>(tokens.size());
  symbols_.resize(tokens.size());
  heap_.clear();
  for (std::int32_t i = 0; i < count; ++i) {
    at(i) = {tokens[static_cast<std::size_t>(i)], i - 1, i + 1 < count ? i + 1 : -1};
  }
  for (std::int32_t i = 0; i + 1 < count; ++i) {
    add_candidate(i);
  }
  std::make_heap(heap_.begin(), heap_.end(), comes_later);
}

bool PairMerger::add_candidate(std::int32_t left) {
  const MergeTable::Merge* merge = merges_.find(at(left).id, at(at(left).next).id);
  if (merge != nullptr) {
    heap_.push_back({merge->rank, left, merge->id});
  }
  return merge != nullptr;
}

void PairMerger::push_candidate(std::int32_t left) {
  if (add_candidate(left)) {
    std::push_heap(heap_.begin(), heap_.end(), comes_later);
  }
}

PairMerger::Candidate PairMerger::pop_candidate() {
  std::pop_heap(heap_.begin(), heap_.end(), comes_later);
  const Candidate top = heap_.back();
  heap_.pop_back();
  return top;
}

void PairMerger::join(const Candidate& candidate) {
  Symbol& left = at(candidate.left);
  if (left.id == kNoToken || left.next < 0) {
    return;
  }
  // Either side may have grown since; the candidate holds if the pair there now makes the same
  // token.
  Symbol& right = at(left.next);
  const MergeTable::Merge* merge = merges_.find(left.id, right.id);
  if (merge == nullptr || merge->id != candidate.id) {
    return;
  }
  left.id = candidate.id;
  left.next = right.next;
  right.id = kNoToken;
  if (left.next >= 0) {
    at(left.next).previous = candidate.left;
    push_candidate(candidate.left);
  }
  if (left.previous >= 0) {
    push_candidate(left.previous);
  }
}

}  // namespace zeroth::text
