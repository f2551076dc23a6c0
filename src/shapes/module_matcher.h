#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "formats/adapter.h"
#include "formats/name_pattern.h"

// PEFT's rules of which module a setting means.
namespace zeroth::shapes {

// The whole path, or its end from a dot on.
[[nodiscard]] bool matches_name(std::string_view module, std::string_view name);

class ModuleMatcher {
 public:
  // `targets`: names, where the settings have no pattern.
  ModuleMatcher(const formats::AdapterConfig& settings, std::vector<std::string> targets);

  // Whether the module gets an adapter: excluded ones come first, then names or the pattern, then
  // the layers. A name that is the whole path of a module is meant whatever its layer is.
  [[nodiscard]] bool is_target(const std::string& module) const;
  [[nodiscard]] bool is_excluded(const std::string& module) const;
  // By the names or the pattern alone.
  [[nodiscard]] bool is_named(const std::string& module) const;
  // The number behind layers_pattern, or the first number in the path if that is not given.
  [[nodiscard]] std::optional<std::int64_t> layer_of(const std::string& module) const;

 private:
  const formats::AdapterConfig& settings_;
  std::vector<std::string> targets_;
  std::optional<formats::NamePattern> pattern_;
  std::optional<formats::NamePattern> excluded_;
  std::vector<formats::NamePattern> layers_;
};

// Values for single modules: the first key that is the end of a module's path from a dot on counts,
// as a regular expression.
template <typename Number>
class PatternTable {
 public:
  PatternTable(const std::vector<std::pair<std::string, Number>>& pattern,
               const std::string& where) {
    for (const auto& [key, value] : pattern) {
      rows_.push_back(
          {formats::NamePattern("(?:.*\\.)?(?:" + key + ")", where), key, value, false});
    }
  }

  [[nodiscard]] Number value_for(const std::string& module, Number otherwise) {
    for (Row& row : rows_) {
      if (row.pattern.matches(module)) {
        row.used = true;
        return row.value;
      }
    }
    return otherwise;
  }

  [[nodiscard]] std::vector<std::string> unused() const {
    std::vector<std::string> keys;
    for (const Row& row : rows_) {
      if (!row.used) {
        keys.push_back(row.key);
      }
    }
    return keys;
  }

 private:
  struct Row {
    formats::NamePattern pattern;
    std::string key;
    Number value;
    bool used;
  };

  std::vector<Row> rows_;
};

}  // namespace zeroth::shapes
