#pragma once

#include <memory>
#include <string>
#include <string_view>

struct pcre2_real_code_8;  // PCRE2's compiled pattern, whose header stays out of ours

namespace zeroth::formats {

// A regular expression over names of modules, in Python's syntax as PEFT's settings have it, run by
// PCRE2 within a bound of work: a pattern that would try without end is an Error of kConfig.
// Immutable.
class NamePattern {
 public:
  // `where` names the place of the pattern in messages. kConfig for one that does not compile.
  NamePattern(std::string_view pattern, std::string where);

  // Python's re.fullmatch.
  [[nodiscard]] bool matches(std::string_view name) const;
  // What the first group holds where the beginning of `name` matches (Python's re.match); empty
  // where it does not.
  [[nodiscard]] std::string first_group(std::string_view name) const;

 private:
  struct Match;
  [[nodiscard]] Match run(std::string_view name, unsigned options) const;

  std::shared_ptr<pcre2_real_code_8> code_;
  std::string where_;
  std::string text_;
};

}  // namespace zeroth::formats
