#pragma once

#include <functional>
#include <string>

#include "base/json.h"
#include "text/pieces.h"

namespace zeroth::text {

// Cuts normalised text into the pieces within which tokens are merged. Empty where the file has
// none: then the whole text is one piece.
using PreTokenizer = std::function<void(Pieces&)>;

[[nodiscard]] PreTokenizer parse_pre_tokenizer(const Json& json, const std::string& where);

// Cuts by a pattern, each match a piece of its own.
[[nodiscard]] PreTokenizer isolating_pre_tokenizer(const Regex& regex);

}  // namespace zeroth::text
