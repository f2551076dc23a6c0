#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex.h"

#include <array>

#include "base/error.h"
#include "text/utf8.h"
#include <fmt/format.h>
#include <pcre2.h>

namespace zeroth::text {
namespace {

constexpr std::uint32_t kCompileOptions = PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE;

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> buffer{};
  pcre2_get_error_message(code, buffer.data(), buffer.size());
  return reinterpret_cast<const char*>(buffer.data());
}

// Walks the pattern far enough to see what Oniguruma reads in another way than PCRE2: sets within
// sets, intersections of sets, and \h (a hexadecimal digit there, a horizontal space here).
std::string foreign_syntax(std::string_view pattern) {
  bool in_set = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view rest = pattern.substr(i);
    if (rest[0] == '\\') {
      if (rest.starts_with("\\h") || rest.starts_with("\\H")) {
        return std::string(rest.substr(0, 2));
      }
      ++i;
    } else if (!in_set) {
      in_set = rest[0] == '[';
      i += in_set && rest.starts_with("[^") ? 1 : 0;
    } else if (rest.starts_with("&&")) {
      return "&& in a set";
    } else if (rest[0] == '[' && !rest.starts_with("[:")) {
      return "a set within a set";
    } else if (rest.starts_with("[:")) {
      i += rest.find(":]") == std::string_view::npos ? 0 : rest.find(":]") + 1;
    } else if (rest[0] == ']') {
      in_set = false;
    }
  }
  return {};
}

class MatchData {
 public:
  explicit MatchData(const pcre2_code* code)
      : data_(pcre2_match_data_create_from_pattern(code, nullptr)) {
    if (data_ == nullptr) {
      throw std::bad_alloc();
    }
  }

  ~MatchData() { pcre2_match_data_free(data_); }

  MatchData(const MatchData&) = delete;
  MatchData& operator=(const MatchData&) = delete;

  // False where nothing matches from `offset` on.
  bool match(const pcre2_code* code, std::string_view text, std::size_t offset) {
    int found = run(code, text, offset, PCRE2_NO_UTF_CHECK);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      found = run(code, text, offset, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT);
    }
    if (found < 0 && found != PCRE2_ERROR_NOMATCH) {
      throw Error(
          ErrorKind::kInternal,
          fmt::format("matching a pattern of tokenizer.json failed: {}", pcre2_message(found)));
    }
    return found >= 0;
  }

  [[nodiscard]] Span span() const {
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(data_);
    return {offsets[0], offsets[1]};
  }

 private:
  int run(const pcre2_code* code,
          std::string_view text,
          std::size_t offset,
          std::uint32_t options) {
    return pcre2_match(code,
                       reinterpret_cast<PCRE2_SPTR>(text.data()),
                       text.size(),
                       offset,
                       options,
                       data_,
                       nullptr);
  }

  pcre2_match_data* data_;
};

}  // namespace

Regex::Regex(std::string_view pattern, const std::string& where) {
  if (const std::string foreign = foreign_syntax(pattern); !foreign.empty()) {
    throw Error(
        ErrorKind::kNotSupported,
        fmt::format("{}: the pattern uses {}, which is not built: {}", where, foreign, pattern));
  }
  int error = 0;
  PCRE2_SIZE error_offset = 0;
  pcre2_code* code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()),
                                   pattern.size(),
                                   kCompileOptions,
                                   &error,
                                   &error_offset,
                                   nullptr);
  if (code == nullptr) {
    throw Error(ErrorKind::kFormat,
                fmt::format("{}: the pattern does not compile: {} at byte {} of {}",
                            where,
                            pcre2_message(error),
                            error_offset,
                            pattern));
  }
  code_.reset(code, pcre2_code_free);
  pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);  // where there is no JIT, matching interprets
}

void Regex::find_all(std::string_view text, std::vector<Span>& matches) const {
  matches.clear();
  const pcre2_code* code = code_.get();
  MatchData data(code);
  std::size_t offset = 0;
  while (offset < text.size() && data.match(code, text, offset)) {
    const Span found = data.span();
    if (found.end > found.begin) {
      matches.push_back(found);
      offset = found.end;
    } else if (found.end < text.size()) {
      offset = found.end + code_point_at(text, found.end).length;
    } else {
      return;
    }
  }
}

}  // namespace zeroth::text
