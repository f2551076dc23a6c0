#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "config/given.h"
#include "config/placement.h"
#include "config/rules.h"
#include "config/run_config.h"

namespace zeroth::config {

// The launchers' variables of this process.
[[nodiscard]] Environment process_environment();

// All that the sources say and what came of it.
struct Resolution {
  RunConfig config;
  std::vector<Written> account;            // every written value and its outcome
  Problems problems;                       // what is wrong; what is planned is none yet
  std::optional<std::string> other_setup;  // --diff
};

// Sources -> schema -> RunConfig. Reads the files that `arguments` name: a recipe, an Accelerate
// file, a ds_config.json; needs neither the model nor the data. kCheck stands for `train` on any
// machine: --world_size says how many ranks, and nothing is required.
[[nodiscard]] Resolution resolve_all(Command command,
                                     std::span<const std::string> arguments,
                                     const Environment& environment);

// Who settles a run in another way than the commands do.
struct Settlement {
  bool requires_inputs = true;                   // the keys that the command requires
  std::function<void(Values& values)> defaults;  // in place of those of the commands
  // After every key has been sorted: takes out what has no place here.
  std::function<void(
      const Values& values, Gathered& gathered, RunConfig& config, Problems& problems)>
      restrict_keys;
};

// From what was gathered to what is in force. Faults of the gathering are in `result.problems`.
void settle(Command command,
            Gathered gathered,
            const Placement& place,
            const Settlement& settlement,
            Resolution& result);

// The configuration of a run: throws everything that is wrong or not built yet, together.
[[nodiscard]] RunConfig config_or_error(Resolution result);

// The same for a run: everything that is wrong or not built yet is shown together in one Error of
// kConfig. A value that changes nothing in this run is left at its default and listed in
// `without_effect`.
[[nodiscard]] RunConfig resolve(Command command,
                                std::span<const std::string> arguments,
                                const Environment& environment);

}  // namespace zeroth::config
