#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "config/resolve.h"

// What is in force, for people and for programs.
namespace zeroth::config {

// Every value that was set or differs from its default, with its source and what it overrode; the
// global batch; then the values without effect, those that are planned, and notices.
[[nodiscard]] std::string start_table(const RunConfig& config);

// "global batch 16 = 1 x 8 x 2", and where the world size comes from.
[[nodiscard]] std::string batch_line(const RunConfig& config);

// What can be told of a run's length and rates before it starts.
struct Outlook {
  std::optional<std::int64_t> rows;  // to train on; nullopt: not counted
  std::optional<std::int64_t> updates_per_epoch;
  std::optional<std::int64_t> updates_by_epochs;
  std::optional<std::int64_t> total_updates;
};

[[nodiscard]] Outlook outlook_of(const RunConfig& config, std::optional<std::int64_t> rows);

// Updates and learning rates; empty where nothing is known.
[[nodiscard]] std::string outlook_lines(const RunConfig& config, const Outlook& outlook);

// What `zeroth check --format json` prints.
[[nodiscard]] Json check_report(const Resolution& resolution, const Outlook& outlook);

// A recipe that says all of it: `zeroth train effective_config.json` reruns the run.
[[nodiscard]] Json effective_config(const RunConfig& config);

}  // namespace zeroth::config
