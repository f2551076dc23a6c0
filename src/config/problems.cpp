#include "config/problems.h"

#include <array>

#include "base/error.h"
#include <fmt/format.h>

namespace zeroth::config {

const char* name_of(ProblemKind kind) noexcept {
  constexpr std::array kNames{"usage",
                              "unknown_key",
                              "misplaced_key",
                              "duplicate_key",
                              "wrong_type",
                              "out_of_range",
                              "conflict",
                              "missing",
                              "batch",
                              "refused",
                              "planned",
                              "file",
                              "placement",
                              "expectation"};
  return kNames.at(static_cast<std::size_t>(kind));
}

void Problems::throw_if_any() const {
  if (problems_.empty()) {
    return;
  }
  if (problems_.size() == 1) {
    throw Error(ErrorKind::kConfig, problems_.front().message);
  }
  std::string text = fmt::format("{} things are wrong", problems_.size());
  for (const Problem& problem : problems_) {
    text += "\n  " + problem.message;
  }
  throw Error(ErrorKind::kConfig, text);
}

}  // namespace zeroth::config
