#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

struct pcre2_real_code_8;  // PCRE2's compiled pattern, whose header stays out of ours

namespace zeroth::text {

// A stretch of bytes of some text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
};

// A pattern as tokenizer.json writes it (Oniguruma's syntax), run by PCRE2 with Unicode classes and
// its JIT. What the two engines read differently is refused (kNotSupported). Immutable; safe to
// share between threads.
class Regex {
 public:
  // `where` names the place of the pattern in messages. kFormat for a pattern that does not
  // compile.
  Regex(std::string_view pattern, const std::string& where);

  // Non-overlapping, non-empty matches in `text`, which is valid UTF-8, from left to right.
  void find_all(std::string_view text, std::vector<Span>& matches) const;

 private:
  std::shared_ptr<pcre2_real_code_8> code_;
};

}  // namespace zeroth::text
