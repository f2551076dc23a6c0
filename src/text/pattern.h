#pragma once

#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/json.h"
#include "text/regex.h"

namespace zeroth::text {

// {"String": "..."} or {"Regex": "..."}, as Split and Replace have them.
class Pattern {
 public:
  static Pattern parse(const Json& json, const std::string& where);

  explicit Pattern(Regex regex) : pattern_(std::move(regex)) {}

  explicit Pattern(std::string literal) : pattern_(std::move(literal)) {}

  void find_all(std::string_view text, std::vector<Span>& matches) const;
  // `text` with every match replaced by `content`, taken as it is.
  [[nodiscard]] std::string replace_all(std::string_view text, std::string_view content) const;

 private:
  std::variant<std::string, Regex> pattern_;
};

}  // namespace zeroth::text
