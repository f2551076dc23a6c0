#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/problems.h"
#include "config/schema.h"

namespace zeroth::config {

// One value that a source gives to one key.
struct Given {
  const Declaration* key = nullptr;
  Json value;
  Source source;
};

// Reads "--key value", "--key=value", "key=value", "--switch" and "--no_switch"; dashes and
// underscores in names are alike. Every fault (unknown option, wrong type, out of range, missing
// value) goes to `problems`.
[[nodiscard]] std::vector<Given> read_command_line(Command command,
                                                   std::span<const std::string> arguments,
                                                   Problems& problems);

}  // namespace zeroth::config
