#pragma once

#include <string>

namespace zeroth::config {

// docs/configuration.md: how values are read and which wins, then every declaration of the schema,
// by section. A test holds the file to it.
[[nodiscard]] std::string reference_page();

}  // namespace zeroth::config
