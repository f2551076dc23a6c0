#include "text/added_tokens.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "text/utf8.h"

namespace zeroth::text {
namespace {

bool adjoins_word(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin > 0 && is_word(code_point_before(text, begin).value)) ||
         (end < text.size() && is_word(code_point_at(text, end).value));
}

std::size_t extended_left(std::string_view text, std::size_t begin, std::size_t limit) {
  while (begin > limit && is_whitespace(code_point_before(text, begin).value)) {
    begin -= code_point_before(text, begin).length;
  }
  return begin;
}

std::size_t extended_right(std::string_view text, std::size_t end) {
  while (end < text.size() && is_whitespace(code_point_at(text, end).value)) {
    end += code_point_at(text, end).length;
  }
  return end;
}

}  // namespace

AddedToken AddedToken::parse(Fields& fields) {
  AddedToken token;
  token.content = fields.string("content");
  token.single_word = fields.flag_or("single_word", false);
  token.lstrip = fields.flag_or("lstrip", false);
  token.rstrip = fields.flag_or("rstrip", false);
  token.special = fields.flag_or("special", false);
  token.normalized = fields.flag_or("normalized", !token.special);
  return token;
}

void AddedTokenMatcher::add(AddedToken token, std::string spelling) {
  if (spelling.empty()) {
    return;  // nothing that could be found
  }
  std::vector<std::size_t>& lengths = lengths_[static_cast<unsigned char>(spelling[0])];
  const auto place =
      std::lower_bound(lengths.begin(), lengths.end(), spelling.size(), std::greater<>());
  if (place == lengths.end() || *place != spelling.size()) {
    lengths.insert(place, spelling.size());
  }
  by_spelling_.insert_or_assign(std::move(spelling), std::move(token));
}

AddedTokenMatcher::Match AddedTokenMatcher::longest_at(std::string_view text,
                                                       std::size_t at) const {
  for (const std::size_t length : lengths_[static_cast<unsigned char>(text[at])]) {
    if (length <= text.size() - at) {
      const auto found = by_spelling_.find(std::string(text.substr(at, length)));
      if (found != by_spelling_.end()) {
        return {length, &found->second};
      }
    }
  }
  return {};
}

std::vector<AddedTokenMatcher::Part> AddedTokenMatcher::split(std::string_view text) const {
  std::vector<Part> parts;
  std::size_t covered = 0;
  for (std::size_t at = 0; at < text.size();) {
    const Match match = longest_at(text, at);
    if (match.token == nullptr) {
      ++at;
      continue;
    }
    std::size_t begin = std::max(at, covered);
    std::size_t end = at + match.length;
    at = end;
    if (match.token->single_word && adjoins_word(text, begin, end)) {
      continue;
    }
    begin = match.token->lstrip ? extended_left(text, begin, covered) : begin;
    end = match.token->rstrip ? extended_right(text, end) : end;
    if (begin > covered) {
      parts.push_back({text.substr(covered, begin - covered), kNoToken});
    }
    parts.push_back({text.substr(begin, end - begin), match.token->id});
    covered = end;
  }
  if (covered < text.size()) {
    parts.push_back({text.substr(covered), kNoToken});
  }
  return parts;
}

}  // namespace zeroth::text
