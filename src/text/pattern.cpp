#include "text/pattern.h"

#include "text/fields.h"

namespace zeroth::text {
namespace {

void find_literal(std::string_view text, std::string_view wanted, std::vector<Span>& matches) {
  matches.clear();
  if (wanted.empty()) {
    return;
  }
  for (std::size_t at = text.find(wanted); at != std::string_view::npos;
       at = text.find(wanted, at + wanted.size())) {
    matches.push_back({at, at + wanted.size()});
  }
}

}  // namespace

Pattern Pattern::parse(const Json& json, const std::string& where) {
  Fields fields(json, where);
  if (fields.find("String") != nullptr) {
    Pattern literal(fields.string("String"));
    fields.refuse_others();
    return literal;
  }
  Pattern regex(Regex(fields.string("Regex"), where));
  fields.refuse_others();
  return regex;
}

void Pattern::find_all(std::string_view text, std::vector<Span>& matches) const {
  if (const auto* literal = std::get_if<std::string>(&pattern_)) {
    find_literal(text, *literal, matches);
  } else {
    std::get<Regex>(pattern_).find_all(text, matches);
  }
}

std::string Pattern::replace_all(std::string_view text, std::string_view content) const {
  std::vector<Span> matches;
  find_all(text, matches);
  std::string out;
  out.reserve(text.size() + matches.size() * content.size());
  std::size_t copied = 0;
  for (const Span& match : matches) {
    out += text.substr(copied, match.begin - copied);
    out += content;
    copied = match.end;
  }
  out += text.substr(copied);
  return out;
}

}  // namespace zeroth::text
