#pragma once

#include <string>

#include "config/resolve.h"

// What is in force, for people and for programs.
namespace zeroth::config {

// Every value that was set or differs from its default, with its source and what it overrode; the
// global batch; then the values without effect, those that are planned, and notices.
[[nodiscard]] std::string start_table(const RunConfig& config);

// "global batch 16 = 1 x 8 x 2", and where the world size comes from.
[[nodiscard]] std::string batch_line(const RunConfig& config);

// What `zeroth check --format json` prints.
[[nodiscard]] Json check_report(const Resolution& resolution);

// A recipe that says all of it: `zeroth train effective_config.json` reruns the run.
[[nodiscard]] Json effective_config(const RunConfig& config);

}  // namespace zeroth::config
