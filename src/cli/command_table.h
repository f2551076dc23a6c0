#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cli/commands.h"
#include "config/run_config.h"

namespace zeroth::cli {

struct Entry {
  config::Command command;
  std::string summary;
  std::string examples;
  int (*run)(Arguments);
};

[[nodiscard]] std::span<const Entry> command_table();

// What `zeroth ARGUMENTS...` does; Errors are shown on standard error and become the exit code.
[[nodiscard]] int dispatch(Arguments arguments);

}  // namespace zeroth::cli
