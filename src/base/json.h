#pragma once

#include <string>
#include <string_view>

#include "base/error.h"
#include <nlohmann/json.hpp>

namespace zeroth {

using Json = nlohmann::ordered_json;  // keeps the order of keys as the user wrote them

struct TextPosition {
  std::size_t line = 1;    // from 1
  std::size_t column = 1;  // from 1, in bytes
};

[[nodiscard]] TextPosition position_of(std::string_view text, std::size_t byte_offset);

// Parses strict JSON. A syntax error is an Error of `kind` that names source:line:column and shows
// what stands there; `first_line` is added to the line number (for one line of a JSONL file).
[[nodiscard]] Json parse_json(std::string_view text,
                              const std::string& source,
                              ErrorKind kind,
                              std::size_t first_line = 1);

// How a JSON value's type is named in messages: "string", "number", "object", ...
[[nodiscard]] const char* type_name(const Json& value) noexcept;

}  // namespace zeroth
