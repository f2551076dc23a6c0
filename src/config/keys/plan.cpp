#include "config/field.h"
#include "config/keys/keys.h"

// The machine that `zeroth plan` speaks of, and the file that it writes.
namespace zeroth::config {
namespace {

constexpr auto kSection = "Planning";
constexpr CommandSet kPlanOnly = bit(Command::kPlan);

}  // namespace

Declarations plan_keys() {
  return {
      {.name = "device_memory",
       .section = kSection,
       .commands = kPlanOnly,
       .help = "memory of one rank's device, such as 80GiB or 80GB; without it the ranks of a host "
               "share a memory as large as this machine's",
       .field = field(&RunConfig::plan, &PlanSettings::device_memory)},
      {.name = "host_memory",
       .section = kSection,
       .commands = kPlanOnly,
       .help =
           "memory of one host: what is offloaded must fit there, and without device_memory the "
           "ranks share it",
       .field = field(&RunConfig::plan, &PlanSettings::host_memory)},
      {.name = "ranks_per_node",
       .aliases = {"gpus_per_node"},
       .type = ValueType::kInteger,
       .range = kAtLeastOne,
       .unit = "ranks",
       .section = kSection,
       .commands = kPlanOnly,
       .help = "ranks on one host; default all, 8 at most",
       .field = field(&RunConfig::plan, &PlanSettings::ranks_per_node)},
      {.name = "write",
       .section = kSection,
       .commands = kPlanOnly,
       .help = "write a ds_config.json with the least sharding that fits",
       .field = field(&RunConfig::plan, &PlanSettings::write)},
      {.name = "overwrite",
       .type = ValueType::kBoolean,
       .default_value = false,
       .section = kSection,
       .commands = kPlanOnly,
       .help = "replace the file that --write names",
       .field = field(&RunConfig::plan, &PlanSettings::overwrite)},
  };
}

}  // namespace zeroth::config
