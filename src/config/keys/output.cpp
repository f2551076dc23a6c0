#include "config/field.h"
#include "config/keys/keys.h"

namespace zeroth::config {
namespace {

constexpr auto kOutputSection = "Output";
constexpr auto kGenerationSection = "Generation";
constexpr auto kOtherSection = "Other";

std::optional<std::string> only_when_sampling(const Values& values) {
  if (values.is("do_sample", false)) {
    return "do_sample is off: the likeliest token is taken";
  }
  return std::nullopt;
}

std::optional<std::string> only_with_chance(const Values& values) {
  if (values.command() == Command::kEval &&
      (values["val_size"].get<double>() == 0 || values.given("eval_dataset"))) {
    return "all rows are evaluated: none is chosen by chance";
  }
  return values.command() == Command::kPredict ? only_when_sampling(values) : std::nullopt;
}

std::optional<std::string> only_when_decoding(const Values& values) {
  if (values.command() == Command::kTokenize && values.is("decode", false)) {
    return "nothing is decoded without --decode";
  }
  return std::nullopt;
}

Field format_field() {
  return {
      .get = [](const RunConfig& config) -> Json { return config.json_output ? "json" : "text"; },
      .set = [](RunConfig& config, const Json& value) { config.json_output = value == "json"; }};
}

constexpr CommandSet kWritesFolder = kTrainOnly | kPredictOnly | bit(Command::kInitModel) |
                                     bit(Command::kTrainTokenizer) | bit(Command::kExport);

}  // namespace

Declarations output_keys() {
  return {
      {.name = "output_dir",
       .aliases = {"export_dir"},
       .section = kOutputSection,
       .commands = kWritesFolder,
       .required = kWritesFolder,
       .help = "folder for the results; made if it is not there",
       .field = field(&RunConfig::output, &OutputSettings::output_dir),
       .on_resume = OnResume::kUntold},
      {.name = "overwrite_output_dir",
       .type = ValueType::kBoolean,
       .default_value = false,
       .section = kOutputSection,
       .commands = kWritesFolder,
       .help = "replace the results that stand in output_dir",
       .field = field(&RunConfig::output, &OutputSettings::overwrite_output_dir),
       .on_resume = OnResume::kUntold},
      {.name = "logging_steps",
       .type = ValueType::kInteger,
       .range = kAtLeastOne,
       .default_value = 10,
       .unit = "updates",
       .section = kOutputSection,
       .commands = kTrainOnly,
       .help = "updates between progress lines; metrics.jsonl has every update",
       .field = field(&RunConfig::output, &OutputSettings::logging_steps)},
      {.name = "log_micro_steps",
       .type = ValueType::kBoolean,
       .default_value = false,
       .section = kOutputSection,
       .commands = kTrainOnly,
       .help = "a record in metrics.jsonl for every micro-step as well",
       .field = field(&RunConfig::output, &OutputSettings::log_micro_steps)},
      {.name = "format",
       .type = ValueType::kChoice,
       .choices = {"text", "json"},
       .default_value = "text",
       .section = kOutputSection,
       .commands = kRunFamily | kCheckOnly | bit(Command::kEnv) | bit(Command::kInspect) |
                   bit(Command::kInitModel) | bit(Command::kTokenize) |
                   bit(Command::kTrainTokenizer) | bit(Command::kExport),
       .help = "json: one JSON object on standard output and nothing else there",
       .field = format_field(),
       .on_resume = OnResume::kUntold},
      {.name = "seed",
       .type = ValueType::kInteger,
       .range = kNotNegative,
       .default_value = 42,
       .section = kOtherSection,
       .commands = kRunFamily | bit(Command::kInitModel),
       .help = "where all chance starts: row order, adapter weights, dropout, sampling",
       .without_effect = only_with_chance,
       .field = field(&RunConfig::seed),
       .on_resume = OnResume::kNeedsAllow},
      {.name = "threads",
       .type = ValueType::kInteger,
       .range = kAtLeastOne,
       .section = kOtherSection,
       .commands = kRunFamily,
       .help = "threads to compute with; default all cores",
       .field = field(&RunConfig::threads),
       .on_resume = OnResume::kUntold},
  };
}

Declarations generation_keys() {
  return {
      {.name = "do_sample",
       .type = ValueType::kBoolean,
       .default_value = false,
       .section = kGenerationSection,
       .commands = kPredictOnly,
       .help = "draw the next token by chance; otherwise the likeliest is taken",
       .field = field(&RunConfig::generation, &GenerationSettings::do_sample)},
      {.name = "temperature",
       .type = ValueType::kNumber,
       .range = kPositive,
       .default_value = 0.95,
       .section = kGenerationSection,
       .commands = kPredictOnly,
       .help = "logits are divided by this before sampling",
       .without_effect = only_when_sampling,
       .field = field(&RunConfig::generation, &GenerationSettings::temperature)},
      {.name = "top_p",
       .type = ValueType::kNumber,
       .range = {.min = 0, .max = 1, .min_excluded = true},
       .default_value = 0.7,
       .section = kGenerationSection,
       .commands = kPredictOnly,
       .help = "sample among the likeliest tokens that together reach this probability",
       .without_effect = only_when_sampling,
       .field = field(&RunConfig::generation, &GenerationSettings::top_p)},
      {.name = "top_k",
       .type = ValueType::kInteger,
       .range = kNotNegative,
       .default_value = 50,
       .section = kGenerationSection,
       .commands = kPredictOnly,
       .help = "sample among this many likeliest tokens; 0: among all",
       .without_effect = only_when_sampling,
       .field = field(&RunConfig::generation, &GenerationSettings::top_k)},
      {.name = "repetition_penalty",
       .type = ValueType::kNumber,
       .range = kPositive,
       .default_value = 1.0,
       .section = kGenerationSection,
       .commands = kPredictOnly,
       .help = "above 1: tokens that stand there already become less likely",
       .field = field(&RunConfig::generation, &GenerationSettings::repetition_penalty)},
      {.name = "max_new_tokens",
       .type = ValueType::kInteger,
       .range = kAtLeastOne,
       .unit = "tokens",
       .section = kGenerationSection,
       .commands = kPredictOnly,
       .help = "longest answer; default 1024, or what the model's positions leave",
       .field = field(&RunConfig::generation, &GenerationSettings::max_new_tokens)},
      {.name = "max_length",
       .type = ValueType::kInteger,
       .range = kAtLeastOne,
       .unit = "tokens",
       .section = kGenerationSection,
       .commands = kPredictOnly,
       .help = "longest prompt and answer together; give it or max_new_tokens",
       .field = field(&RunConfig::generation, &GenerationSettings::max_length)},
      {.name = "skip_special_tokens",
       .type = ValueType::kBoolean,
       .default_value = true,
       .section = kGenerationSection,
       .commands = kPredictOnly | bit(Command::kTokenize),
       .help = "leave special tokens out of decoded text",
       .without_effect = only_when_decoding,
       .field = field(&RunConfig::generation, &GenerationSettings::skip_special_tokens)},
  };
}

}  // namespace zeroth::config
