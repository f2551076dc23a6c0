#include "config/field.h"
#include "config/keys/forms.h"

// When checkpoints are written, which stay, and from which a run goes on.
namespace zeroth::config {
namespace {

constexpr auto kSection = "Checkpoints";

std::optional<std::string> only_when_saving(const Values& values) {
  return values.is("save_strategy", "no") ? std::optional<std::string>("save_strategy is no")
                                          : std::nullopt;
}

std::optional<std::string> only_by_steps(const Values& values) {
  return values.is("save_strategy", "steps")
             ? std::nullopt
             : std::optional<std::string>("save_strategy is not steps");
}

std::optional<std::string> only_with_a_best(const Values& values) {
  return values.is("load_best_model_at_end", true) || values.is("save_strategy", "best")
             ? std::nullopt
             : std::optional<std::string>("no best weights are looked for");
}

// Transformers takes true and a folder alike; false, as no value does.
std::string resumed_from(const Json& value) {
  if (value.is_boolean()) {
    return value.get<bool>() ? "latest" : "";
  }
  return value.is_string() && value != "none" ? value.get<std::string>() : "";
}

std::optional<std::string> only_when_resuming(const Values& values) {
  return resumed_from(values["resume_from_checkpoint"]).empty()
             ? std::optional<std::string>("nothing is resumed")
             : std::nullopt;
}

Field resume_field() {
  return {.get = [](const RunConfig& config) -> Json { return config.resume.from; },
          .set = [](RunConfig& config,
                    const Json& value) { config.resume.from = resumed_from(value); }};
}

Declarations when_keys() {
  return {
      {.name = "save_strategy",
       .type = ValueType::kChoice,
       .choices = choices_of<SaveCadence>(),
       .default_value = "steps",
       .section = kSection,
       .commands = kTrainOnly,
       .help = "when to write a checkpoint: no, every save_steps updates and at the end, after "
               "every epoch, or when an evaluation is the best so far",
       .field = field(&RunConfig::saving, &SavingSettings::cadence)},
      {.name = "save_steps",
       .type = ValueType::kNumber,
       .range = kPositive,
       .default_value = 500.0,
       .unit = "updates, or a share of all updates below 1",
       .section = kSection,
       .commands = kTrainOnly,
       .help = "updates between checkpoints with save_strategy steps",
       .without_effect = only_by_steps,
       .field = field(&RunConfig::saving, &SavingSettings::steps)},
  };
}

Declarations what_keys() {
  return {
      {.name = "save_total_limit",
       .type = ValueType::kInteger,
       .range = kAtLeastOne,
       .unit = "checkpoints",
       .section = kSection,
       .commands = kTrainOnly,
       .help = "how many checkpoints stay: the oldest go when a new one stands; default all",
       .without_effect = only_when_saving,
       .field = field(&RunConfig::saving, &SavingSettings::total_limit)},
      {.name = "save_only_model",
       .type = ValueType::kBoolean,
       .default_value = false,
       .section = kSection,
       .commands = kTrainOnly,
       .help = "checkpoints hold weights alone: smaller, and no run can go on from them",
       .without_effect = only_when_saving,
       .field = field(&RunConfig::saving, &SavingSettings::only_model)},
  };
}

Declarations best_keys() {
  Declaration metric = off_too({"loss", "eval_loss"},
                               planned("metric_for_best_model",
                                       text(),
                                       "what decides which evaluation is the best",
                                       "the loss decides, nothing else is measured"));
  metric.without_effect = only_with_a_best;
  Declaration greater = refused("greater_is_better",
                                flag(nullptr),
                                "whether a higher metric_for_best_model is better",
                                "the loss is what is measured, and lower is better");
  greater.off_values = {nullptr, false};
  greater.without_effect = only_with_a_best;
  metric.section = greater.section = kSection;
  return {{.name = "load_best_model_at_end",
           .type = ValueType::kBoolean,
           .default_value = false,
           .section = kSection,
           .commands = kTrainOnly,
           .help = "the result has the weights of the best evaluation, not the last ones",
           .field = field(&RunConfig::saving, &SavingSettings::load_best_at_end)},
          std::move(metric),
          std::move(greater)};
}

Declarations resume_keys() {
  return {
      {.name = "resume_from_checkpoint",
       .aliases = {"resume"},
       .type = ValueType::kAny,
       .section = kSection,
       .commands = kTrainOnly,
       .help = "go on from a checkpoint: its folder; latest (or true), the newest in output_dir; "
               "auto, the same, or a new run where there is none",
       .field = resume_field(),
       .off_values = {"none"},
       .on_resume = OnResume::kUntold},
      {.name = "allow",
       .type = ValueType::kList,
       .default_value = Json::array(),
       .repeatable = true,
       .section = kSection,
       .commands = kTrainOnly,
       .help = "KEY: go on from a checkpoint though this setting decides what the run means and "
               "has changed; may be given several times",
       .without_effect = only_when_resuming,
       .field = field(&RunConfig::resume, &ResumeSettings::allowed),
       .on_resume = OnResume::kUntold},
  };
}

Declarations idle_keys() {
  return {
      harmless("save_on_each_node",
               flag(false),
               "write the model on every host",
               "each rank writes its own part wherever it runs"),
      refused("save_safetensors",
              flag(true),
              "write safetensors rather than .bin files",
              "results are safetensors, which every loader reads: leave it out"),
      harmless("enable_jit_checkpoint",
               flag(false),
               "save when a signal ends the run",
               "a run that a signal ends always saves first"),
      refused("ignore_data_skip",
              flag(false),
              "start the rows anew when resuming",
              "a resumed run goes on with the row it would have read next: leave it out"),
      harmless("restore_callback_states_from_checkpoint",
               flag(false),
               "take callbacks' state from the checkpoint",
               "there are no callbacks whose state could be lost"),
  };
}

}  // namespace

Declarations saving_keys() {
  return joined(
      {when_keys(), what_keys(), best_keys(), resume_keys(), in_section(kSection, idle_keys())});
}

}  // namespace zeroth::config
