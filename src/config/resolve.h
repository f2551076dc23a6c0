#pragma once

#include <span>
#include <string>

#include "config/rules.h"
#include "config/run_config.h"

namespace zeroth::config {

// The launchers' variables of this process.
[[nodiscard]] Environment process_environment();

// Sources -> schema -> RunConfig. Touches no file. Everything that is wrong is shown together in
// one Error of kConfig. A value that changes nothing in this run is left at its default and listed
// in `without_effect`.
[[nodiscard]] RunConfig resolve(Command command,
                                std::span<const std::string> arguments,
                                const Environment& environment);

// Every value that was set or differs from its default, with its source and what it overrode; then
// the values without effect, and why.
[[nodiscard]] std::string start_table(const RunConfig& config);

}  // namespace zeroth::config
