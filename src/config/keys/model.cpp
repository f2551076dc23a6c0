#include "config/field.h"
#include "config/keys/keys.h"

namespace zeroth::config {
namespace {

constexpr auto kModelSection = "Model";

std::optional<std::string> only_with_frozen_weights(const Values& values) {
  if (values.command() == Command::kTrain && values.is("finetuning_type", "full")) {
    return "finetuning_type is full: no weights are frozen";
  }
  return std::nullopt;
}

// A switch of one precision; off, it leaves the others alone.
Field switch_of(Precision precision) {
  return {
      .get = [=](const RunConfig& config) -> Json { return config.model.precision == precision; },
      .set =
          [=](RunConfig& config, const Json& value) {
            if (value.get<bool>()) {
              config.model.precision = precision;
            } else if (config.model.precision == precision) {
              config.model.precision = Precision::kFp32;
            }
          }};
}

}  // namespace

Declarations model_keys() {
  Declarations keys{
      {.name = "model_name_or_path",
       .aliases = {"model"},
       .section = kModelSection,
       .commands = kRunFamily | bit(Command::kTokenize) | bit(Command::kExport),
       .required = kWithRows | bit(Command::kTokenize) | bit(Command::kExport),
       .help = "a Hugging Face model folder, or the id of a model in Hugging Face's cache",
       .field = field(&RunConfig::model, &ModelSettings::model_name_or_path),
       .on_resume = OnResume::kByContent},
      {.name = "cache_dir",
       .section = kModelSection,
       .commands = kRunFamily | bit(Command::kTokenize) | bit(Command::kExport),
       .help = "Hugging Face's cache, which models given by their id are looked for in; default "
               "where its own tools keep it (HF_HUB_CACHE, HF_HOME)",
       .field = field(&RunConfig::model, &ModelSettings::cache_dir),
       .on_resume = OnResume::kUntold},
      {.name = "model_revision",
       .default_value = "main",
       .section = kModelSection,
       .commands = kRunFamily | bit(Command::kTokenize) | bit(Command::kExport),
       .help = "branch, tag or commit of a model in Hugging Face's cache",
       .field = field(&RunConfig::model, &ModelSettings::model_revision),
       .on_resume = OnResume::kUntold},
      {.name = "model_config",
       .section = kModelSection,
       .commands = bit(Command::kInitModel) | bit(Command::kPlan) | bit(Command::kBench),
       .required = bit(Command::kInitModel),
       .help = "a config.json that gives the shape of the model",
       .field = field(&RunConfig::model, &ModelSettings::model_config)},
      {.name = "adapter_name_or_path",
       .aliases = {"adapter", "checkpoint_dir"},
       .old_names = {"checkpoint_dir"},
       .section = kModelSection,
       .commands = kWithRows | bit(Command::kExport),
       .help =
           "a PEFT adapter folder to add to the model; of several, with commas between them, all "
           "but the last are merged into it",
       .field = field(&RunConfig::model, &ModelSettings::adapter_name_or_path),
       .on_resume = OnResume::kNeedsAllow},
      {.name = "share_frozen",
       .type = ValueType::kBoolean,
       .default_value = true,
       .section = kModelSection,
       .commands = kRunFamily,
       .help = "weights that do not train are there once for all ranks of a host: the mapped file, "
               "or one converted copy; false: once for each rank. Changes no number",
       .without_effect = only_with_frozen_weights,
       .field = field(&RunConfig::model, &ModelSettings::share_frozen)},
      {.name = "bf16",
       .deepspeed = {"bf16.enabled", "bfloat16.enabled"},
       .old_names = {"bfloat16.enabled"},
       .type = ValueType::kBoolean,
       .default_value = false,
       .may_be_auto = true,
       .section = kModelSection,
       .commands = kRunFamily | bit(Command::kInitModel),
       .help = "compute in bfloat16 with fp32 master weights and sums; otherwise fp32, whatever "
               "the stored type",
       .field = switch_of(Precision::kBf16),
       .on_resume = OnResume::kNeedsAllow},
      {.name = "fp16",
       .deepspeed = {"fp16.enabled"},
       .type = ValueType::kBoolean,
       .default_value = false,
       .may_be_auto = true,
       .section = kModelSection,
       .commands = kRunFamily | bit(Command::kInitModel),
       .help = "compute in float16 with fp32 master weights, and scale the loss so that gradients "
               "do not vanish",
       .field = switch_of(Precision::kFp16),
       .on_resume = OnResume::kNeedsAllow},
  };
  Declarations finetune = finetune_keys();
  keys.insert(keys.end(), finetune.begin(), finetune.end());
  return keys;
}

}  // namespace zeroth::config
