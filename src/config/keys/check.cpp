#include "config/keys/keys.h"

// What holds a run to the user's words.
namespace zeroth::config {
namespace {

constexpr auto kSection = "Checking";

}  // namespace

Declarations check_keys() {
  return {
      {.name = "strict",
       .type = ValueType::kBoolean,
       .default_value = false,
       .section = kSection,
       .commands = kRunFamily,
       .help = "an overridden value, or one without effect, is an error",
       .on_resume = OnResume::kUntold},
      {.name = "expect",
       .type = ValueType::kList,
       .default_value = Json::array(),
       .repeatable = true,
       .section = kSection,
       .commands = kRunFamily,
       .help = "KEY=VALUE: an error if another value is in force; may be given several times",
       .on_resume = OnResume::kUntold},
      {.name = "min_effective_batch",
       .type = ValueType::kInteger,
       .range = kRowCount,
       .unit = "rows",
       .section = kSection,
       .commands = kTrainOnly,
       .help = "an error if an update takes fewer rows; without it, fewer than 16 are a notice",
       .on_resume = OnResume::kUntold},
      {.name = "world_size",
       .type = ValueType::kInteger,
       .range = kAtLeastOne,
       .unit = "ranks",
       .section = kSection,
       .commands = kCheckOnly,
       .help = "speak for a machine with this many ranks"},
      {.name = "diff",
       .section = kSection,
       .commands = bit(Command::kCheck) | bit(Command::kExplain) | bit(Command::kInspect),
       .help = "another set-up to compare with: a recipe, ds_config.json or effective_config.json; "
               "for inspect another model, adapter or checkpoint"},
  };
}

}  // namespace zeroth::config
