#define PCRE2_CODE_UNIT_WIDTH 8
#include "formats/name_pattern.h"

#include <array>
#include <new>

#include "base/error.h"
#include <fmt/format.h>
#include <pcre2.h>

namespace zeroth::formats {
namespace {

constexpr std::uint32_t kMostSteps = 1'000'000;  // a name has a hundred characters

std::string message_of(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw Error(ErrorKind::kConfig,
              fmt::format("{}: {}\n  Write a regular expression as Python reads it, or names of "
                          "modules.",
                          where,
                          what));
}

// "{,3}" repeats up to three times in Python; PCRE2 takes it as plain text before 10.43.
std::string with_lower_bounds(std::string_view pattern) {
  std::string text;
  bool in_set = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    text += pattern[i];
    if (pattern[i] == '\\' && i + 1 < pattern.size()) {
      text += pattern[++i];
    } else if (in_set) {
      in_set = pattern[i] != ']';
    } else if (pattern[i] == '[') {
      in_set = true;
    } else if (pattern[i] == '{' && i + 1 < pattern.size() && pattern[i + 1] == ',') {
      text += '0';
    }
  }
  return text;
}

}  // namespace

struct NamePattern::Match {
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data;
  bool found = false;
};

NamePattern::NamePattern(std::string_view pattern, std::string where)
    : where_(std::move(where)), text_(pattern) {
  const std::string bounded = with_lower_bounds(pattern);
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(bounded.data()),
                                   bounded.size(),
                                   PCRE2_UTF | PCRE2_DOLLAR_ENDONLY,
                                   &error,
                                   &offset,
                                   nullptr);
  if (code == nullptr) {
    refuse(where_,
           fmt::format(
               "\"{}\" is no regular expression: {} at byte {}", text_, message_of(error), offset));
  }
  code_.reset(code, pcre2_code_free);
}

NamePattern::Match NamePattern::run(std::string_view name, unsigned options) const {
  Match match{{pcre2_match_data_create_from_pattern(code_.get(), nullptr), pcre2_match_data_free}};
  const std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context(
      pcre2_match_context_create(nullptr), pcre2_match_context_free);
  if (match.data == nullptr || context == nullptr) {
    throw std::bad_alloc();
  }
  pcre2_set_match_limit(context.get(), kMostSteps);
  const int found = pcre2_match(code_.get(),
                                reinterpret_cast<PCRE2_SPTR>(name.data()),
                                name.size(),
                                0,
                                options,
                                match.data.get(),
                                context.get());
  if (found < 0 && found != PCRE2_ERROR_NOMATCH) {
    refuse(where_,
           fmt::format("\"{}\" cannot be matched with {}: {}", text_, name, message_of(found)));
  }
  match.found = found >= 0;
  return match;
}

bool NamePattern::matches(std::string_view name) const {
  return run(name, PCRE2_ANCHORED | PCRE2_ENDANCHORED).found;
}

std::string NamePattern::first_group(std::string_view name) const {
  const Match match = run(name, PCRE2_ANCHORED);
  if (!match.found || pcre2_get_ovector_count(match.data.get()) < 2) {
    return {};
  }
  const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(match.data.get());
  return offsets[2] == PCRE2_UNSET ? std::string()
                                   : std::string(name.substr(offsets[2], offsets[3] - offsets[2]));
}

}  // namespace zeroth::formats
