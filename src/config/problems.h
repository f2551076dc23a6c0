#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/json.h"

namespace zeroth::config {

enum class ProblemKind {
  kUsage,       // a word of the command line that cannot be read
  kUnknown,     // no such key
  kMisplaced,   // a key that belongs elsewhere
  kDuplicate,   // one key twice in one source
  kType,        // not a value of the key's type
  kRange,       // outside the key's range
  kConflict,    // two values that exclude each other
  kMissing,     // a value that is needed
  kBatch,       // batch sizes that do not fit together
  kRefused,     // known, and not what Zeroth does
  kPlanned,     // known, not built yet
  kFile,        // a file that is not there or cannot be read
  kPlacement,   // launchers' variables
  kExpectation  // --strict, --expect, --min_effective_batch
};

[[nodiscard]] const char* name_of(ProblemKind kind) noexcept;  // "unknown_key", "conflict", ...

struct Problem {
  ProblemKind kind = ProblemKind::kConflict;
  std::string key;                     // the key it is about; empty: none, or several
  std::string message;                 // complete: what, which value from which source, how to mend
  std::vector<std::string> sources{};  // "ds_config.json:14", "command line"
};

// Everything that is wrong with the settings of a run, gathered so that one message shows it all.
class Problems {
 public:
  void add(Problem problem) { problems_.push_back(std::move(problem)); }

  void add(ProblemKind kind, std::string key, std::string message) {
    add({.kind = kind, .key = std::move(key), .message = std::move(message), .sources = {}});
  }

  [[nodiscard]] bool empty() const noexcept { return problems_.empty(); }

  [[nodiscard]] const std::vector<Problem>& all() const noexcept { return problems_; }

  // Throws an Error of kConfig with every problem in the order found; returns if there is none.
  void throw_if_any() const;

 private:
  std::vector<Problem> problems_;
};

}  // namespace zeroth::config
