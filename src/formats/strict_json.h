#pragma once

#include <string>
#include <string_view>

#include "base/json.h"

// JSON objects as files of models hold them, with what plain parsers let pass made an error: a key
// that stands twice, a number beyond double's range, and a top level that is no object.
namespace zeroth::formats {

using SortedJson =
    nlohmann::json;  // for tables of many thousand names: look-ups do not walk the object

// Keeps the order of keys. Faults are Errors of `kind` that name source:line:column where there is
// one.
[[nodiscard]] Json parse_object(std::string_view text, const std::string& source, ErrorKind kind);

// The same for large machine-written tables; faults name the byte instead of line and column.
[[nodiscard]] SortedJson parse_table(std::string_view text,
                                     const std::string& source,
                                     ErrorKind kind);

// A value as shown in messages: on one line, printable, cut to a readable length.
[[nodiscard]] std::string shown(const Json& value);
[[nodiscard]] std::string printable(std::string_view text, std::size_t at_most);

}  // namespace zeroth::formats
