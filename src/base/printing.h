#pragma once

#include <string>

#include "base/json.h"

// What goes to a terminal or another program: no byte may disturb it.
namespace zeroth {

// `text` with a '?' for each control character that is no line break or tab.
[[nodiscard]] std::string visible(std::string text);

[[nodiscard]] bool is_utf8(const std::string& text);

// As one line of JSON; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string json_text(const Json& value);

}  // namespace zeroth
