#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/json.h"

namespace zeroth::text {

// Turns the spellings of tokens back into text, step by step; what is left in the vector is joined.
using Decoder = std::function<void(std::vector<std::string>&)>;

[[nodiscard]] Decoder parse_decoder(const Json& json, const std::string& where);

}  // namespace zeroth::text
