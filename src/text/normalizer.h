#pragma once

#include <functional>
#include <string>

#include "base/json.h"

namespace zeroth::text {

// What is done to text before it is cut: Unicode normal forms, replaced and prepended strings. In
// and out are valid UTF-8. Empty where the file has none.
using Normalizer = std::function<void(std::string&)>;

[[nodiscard]] Normalizer parse_normalizer(const Json& json, const std::string& where);

}  // namespace zeroth::text
