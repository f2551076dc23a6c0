#include "config/field.h"
#include "config/keys/forms.h"

namespace zeroth::config {
namespace {

constexpr auto kBatchSection = "Batch";
constexpr auto kScheduleSection = "Schedule";

std::optional<std::string> only_when_evaluating(const Values& values) {
  const bool has_rows = values.given("eval_dataset") || values["val_size"].get<double>() > 0;
  if (values.command() == Command::kTrain && !has_rows) {
    return "there are no rows to evaluate on: neither eval_dataset nor val_size is given";
  }
  return std::nullopt;
}

Declarations batch_keys() {
  return {
      {.name = "per_device_train_batch_size",
       .aliases = {"batch_size", "micro_batch_size", "per_gpu_train_batch_size", "rows"},
       .deepspeed = {"train_micro_batch_size_per_gpu"},
       .old_names = {"per_gpu_train_batch_size"},
       .type = ValueType::kInteger,
       .range = kRowCount,
       .default_value = 8,
       .may_be_auto = true,
       .unit = "rows",
       .section = kBatchSection,
       .commands = kUpdates,
       .help = "rows of one forward on one rank",
       .field = field(&RunConfig::batch, &BatchSettings::micro_batch_rows)},
      {.name = "gradient_accumulation_steps",
       .deepspeed = {"gradient_accumulation_steps"},
       .accelerate = {"deepspeed_config.gradient_accumulation_steps",
                      "gradient_accumulation_steps"},
       .type = ValueType::kInteger,
       .range = kRowCount,
       .default_value = 1,
       .may_be_auto = true,
       .unit = "micro-steps",
       .section = kBatchSection,
       .commands = kUpdates,
       .help = "forwards and backwards that make one update",
       .field = field(&RunConfig::batch, &BatchSettings::accumulation)},
      {.name = "train_batch_size",
       .aliases = {"global_batch_size"},
       .deepspeed = {"train_batch_size"},
       .type = ValueType::kInteger,
       .range = kRowCount,
       .may_be_auto = true,
       .unit = "rows",
       .section = kBatchSection,
       .commands = kUpdates,
       .help =
           "rows of one update over all ranks: micro-batch x accumulation x data-parallel ranks",
       .on_resume = OnResume::kNeedsAllow},
      {.name = "per_device_eval_batch_size",
       .aliases = {"eval_batch_size", "per_gpu_eval_batch_size"},
       .old_names = {"per_gpu_eval_batch_size"},
       .type = ValueType::kInteger,
       .range = kRowCount,
       .default_value = 8,
       .unit = "rows",
       .section = kBatchSection,
       .commands = kWithRows,
       .help = "rows of one forward while evaluating or predicting",
       .without_effect = only_when_evaluating,
       .field = field(&RunConfig::batch, &BatchSettings::eval_rows)},
      {.name = "ranks",
       .aliases = {"nproc_per_node", "num_gpus"},
       .accelerate = {"num_processes"},
       .type = ValueType::kInteger,
       .range = kAtLeastOne,
       .default_value = 1,
       .section = kBatchSection,
       .commands = kRunFamily | bit(Command::kLaunch),
       .help = "processes on this host; under mpirun or srun their own number",
       .field = field(&RunConfig::batch, &BatchSettings::world_size)},
      {.name = "start_timeout",
       .type = ValueType::kNumber,
       .range = {.min = 0, .min_excluded = true},
       .default_value = 120.0,
       .unit = "seconds",
       .section = kBatchSection,
       .commands = kRunFamily,
       .help = "how long ranks wait for each other at the start",
       .without_effect = only_with_ranks,
       .field = field(&RunConfig::launch, &LaunchSettings::start_timeout_s),
       .on_resume = OnResume::kUntold},
  };
}

Declarations evaluation_keys() {
  return {
      {.name = "eval_strategy",
       .aliases = {"evaluation_strategy"},
       .old_names = {"evaluation_strategy"},
       .type = ValueType::kChoice,
       .choices = choices_of<Cadence>(),
       .default_value = "no",
       .section = kScheduleSection,
       .commands = kTrainOnly,
       .help =
           "when to evaluate while training; with rows to evaluate on, always at the end as well",
       .field = field(&RunConfig::output, &OutputSettings::eval_cadence)},
      {.name = "eval_steps",
       .type = ValueType::kInteger,
       .range = kAtLeastOne,
       .unit = "updates",
       .section = kScheduleSection,
       .commands = kTrainOnly,
       .help = "updates between evaluations with eval_strategy steps; default logging_steps",
       .without_effect =
           [](const Values& values) {
             return values.is("eval_strategy", "steps")
                        ? std::nullopt
                        : std::optional<std::string>("eval_strategy is not steps");
           },
       .rule = [](const Values& values) -> std::optional<RuleValue> {
         return RuleValue{values["logging_steps"], "logging_steps"};
       },
       .field = field(&RunConfig::output, &OutputSettings::eval_steps)},
  };
}

}  // namespace

Declarations training_keys() {
  return joined({batch_keys(), zero_keys(), optimizer_keys(), schedule_keys(), evaluation_keys()});
}

}  // namespace zeroth::config
