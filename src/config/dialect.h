#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/problems.h"
#include "config/schema.h"

// The three ways in which files spell the same schema.
namespace zeroth::config {

enum class Dialect {
  kDeepSpeed,   // ds_config.json
  kAccelerate,  // an Accelerate YAML
  kRecipe,      // names as on the command line
};

[[nodiscard]] const char* file_of(Dialect dialect) noexcept;  // "a ds_config.json"

// nullptr where the dialect has no such key.
[[nodiscard]] const Declaration* find_in(Dialect dialect, std::string_view path);

// Whether keys of the dialect stand inside `path`.
[[nodiscard]] bool is_block(Dialect dialect, std::string_view path);

// Complete paths in the order of the schema.
[[nodiscard]] const std::vector<std::string>& paths_in(Dialect dialect);

// The names nearest to `word`; those much farther than the first are left out, for a typing mistake
// has one meaning.
[[nodiscard]] std::vector<std::string> nearest_names(const std::string& word,
                                                     const std::vector<std::string>& names);

// "unknown key ...", with the nearest key, or where the key belongs.
[[nodiscard]] Problem unknown_key(Dialect dialect,
                                  const std::string& path,
                                  const std::string& source);

}  // namespace zeroth::config
