#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "config/problems.h"
#include "config/schema.h"

// What the sources say, before anything is decided.
namespace zeroth::config {

// What became of one written value.
enum class Outcome { kInForce, kOverridden, kWithoutEffect, kPlanned, kRefused };

[[nodiscard]] const char* name_of(Outcome outcome) noexcept;

// One value as it was written: a leaf of a file, or an option of the command line. Every one ends
// in one of the outcomes (promise 1).
struct Written {
  std::string path;  // as spelled, e.g. "zero_optimization.stage"
  Json value;
  std::string source;          // "ds_config.json:14", "command line"
  std::size_t num_leaves = 1;  // a block with names of the user's own holds several
  Outcome outcome = Outcome::kRefused;
  std::string note{};  // why, where it is not in force
};

// One value that a source gives to one key.
struct Given {
  const Declaration* key = nullptr;
  Json value;  // of the key's type, or "auto"
  Source source;
  std::string spelled;      // the name that was written
  std::size_t written = 0;  // which entry of the account it comes from

  [[nodiscard]] bool is_auto() const { return key->may_be_auto && value == "auto"; }
};

// All that was written and what it gives.
struct Gathered {
  std::vector<Given> given;
  std::vector<Written> account;
  std::vector<std::string> notices;  // old names, keys that are commented out
};

// One value that was written for a key.
struct Statement {
  Json value;    // of the key's type
  Json written;  // as it stands there: "OneBitAdam"
  Source source;
  std::string spelled;  // the name that stands there
};

// Takes in a statement about `key`: checks nothing, splits it into the keys that it stands for
// (Declaration::parts). Their faults go to `problems`.
void give(Gathered& gathered, const Declaration& key, Statement statement, Problems& problems);

}  // namespace zeroth::config
