#pragma once

#include <string>
#include <vector>

#include "config/dialect.h"
#include "config/given.h"
#include "config/schema.h"

// Values and documents made up from a declaration alone.
namespace zeroth::config {

// Two values that the key takes and that differ, the first from the default as well; fewer where it
// takes fewer.
[[nodiscard]] std::vector<Json> sample_values(const Declaration& key);

// Values just outside the key's range; empty without one.
[[nodiscard]] std::vector<Json> values_out_of_range(const Declaration& key);

// Values of another type, as they are written in a file of the dialect.
[[nodiscard]] std::vector<Json> values_of_wrong_type(const Declaration& key, Dialect dialect);

// A document with one key at this path. In a recipe dots are part of the name.
struct Document {
  std::string text;
  std::size_t line = 0;  // of the key
};

[[nodiscard]] Document document_with(Dialect dialect, const std::string& path, const Json& value);

// "file.json" or "file.yaml".
[[nodiscard]] std::string file_name(Dialect dialect);

// What gathering the document gives.
struct Reading {
  std::vector<Written> account;
  std::vector<Problem> problems;
  std::string source;  // "file.json:3", of the key
};

[[nodiscard]] Reading reading_of(Dialect dialect, const std::string& path, const Json& value);

// As typed on a command line.
[[nodiscard]] std::string as_argument(const std::string& name, const Json& value);

}  // namespace zeroth::config
