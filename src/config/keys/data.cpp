#include "config/field.h"
#include "config/keys/keys.h"
#include "config/keys/templates.h"

namespace zeroth::config {
namespace {

constexpr auto kSection = "Data";

std::optional<std::string> only_with_pretraining(const Values& values) {
  if (!values.is("stage", "pt")) {
    return "stage is sft: each row stands for itself";
  }
  return std::nullopt;
}

std::optional<std::string> only_with_supervision(const Values& values) {
  if (values.command() != Command::kPredict && values.is("stage", "pt")) {
    return "stage is pt: the rows are plain text, every token is trained";
  }
  return std::nullopt;
}

std::optional<std::string> unless_rows_come_from_elsewhere(const Values& values) {
  const bool reads_eval_rows = (bit(values.command()) & (bit(Command::kEval) | kPredictOnly)) != 0;
  if (reads_eval_rows && values.given("eval_dataset")) {
    return "eval_dataset is read instead";
  }
  return std::nullopt;
}

std::map<std::string, std::string> other_stages() {
  return {{"rm", "reward models are not trained: use sft"},
          {"ppo", "reinforcement learning is not built: use sft"},
          {"dpo", "preferences are not trained on: use sft on the preferred answers"},
          {"kto", "praise and blame are not trained on: use sft on the good answers"}};
}

Field shuffle_field() {
  return {.get = [](const RunConfig& config) -> Json { return !config.data.shuffle; },
          .set = [](RunConfig& config,
                    const Json& value) { config.data.shuffle = !value.get<bool>(); }};
}

Declarations source_keys() {
  return {
      {.name = "dataset",
       .type = ValueType::kList,
       .default_value = Json::array(),
       .section = kSection,
       .commands = kWithRows | bit(Command::kTrainTokenizer),
       .required = kTrainOnly | bit(Command::kTrainTokenizer),
       .help =
           "data files, separated by commas: JSON or JSONL of alpaca, sharegpt or messages rows, "
           "for stage pt also .txt",
       .without_effect = unless_rows_come_from_elsewhere,
       .field = field(&RunConfig::data, &DataSettings::dataset),
       .on_resume = OnResume::kByContent},
      {.name = "eval_dataset",
       .type = ValueType::kList,
       .default_value = Json::array(),
       .section = kSection,
       .commands = kWithRows,
       .help = "data files to evaluate on, or to predict for",
       .field = field(&RunConfig::data, &DataSettings::eval_dataset)},
      {.name = "dataset_dir",
       .section = kSection,
       .commands = kWithRows | bit(Command::kTrainTokenizer),
       .help = "folder that relative data paths start from; default: the working folder"},
      {.name = "val_size",
       .type = ValueType::kNumber,
       .range = kNotNegative,
       .default_value = 0.0,
       .unit = "rows from 1, a share below",
       .section = kSection,
       .commands = kTrainAndEval,
       .help = "rows of dataset that are set aside for evaluation, chosen by seed; eval takes the "
               "rows that train sets aside",
       .without_effect =
           [](const Values& values) {
             return values.command() == Command::kEval ? unless_rows_come_from_elsewhere(values)
                                                       : std::nullopt;
           },
       .field = field(&RunConfig::data, &DataSettings::val_size)},
      {.name = "dataset_columns",
       .type = ValueType::kList,
       .default_value = Json::array(),
       .section = kSection,
       .commands = kWithRows,
       .help = "what the columns of a row are, as in prompt=question,response=answer; of prompt, "
               "query, response, history, system, or messages, system; default: as the rows say",
       .without_effect = only_with_supervision,
       .field = field(&RunConfig::data, &DataSettings::dataset_columns),
       .on_resume = OnResume::kByContent},
      {.name = "max_samples",
       .type = ValueType::kInteger,
       .range = {.min = 1, .also = -1},
       .default_value = -1,
       .unit = "rows",
       .section = kSection,
       .commands = kWithRows,
       .help = "only the first rows of each data file; -1 for all",
       .field = field(&RunConfig::data, &DataSettings::max_samples)},
      {.name = "skip_bad_rows",
       .type = ValueType::kBoolean,
       .default_value = false,
       .section = kSection,
       .commands = kWithRows,
       .help = "drop and count rows that cannot be used, rather than stop",
       .field = field(&RunConfig::data, &DataSettings::skip_bad_rows)},
      {.name = "disable_shuffling",
       .type = ValueType::kBoolean,
       .default_value = false,
       .section = kSection,
       .commands = kTrainOnly,
       .help = "train the rows in the order of the files",
       .field = shuffle_field(),
       .on_resume = OnResume::kNeedsAllow},
  };
}

Declarations row_keys() {
  return {
      {.name = "stage",
       .type = ValueType::kChoice,
       .choices = choices_of<TrainStage>(),
       .refused_choices = other_stages(),
       .default_value = "sft",
       .section = kSection,
       .commands = kTrainAndEval,
       .help = "sft: instruction rows with the prompt masked; pt: plain text",
       .field = field(&RunConfig::data, &DataSettings::stage),
       .on_resume = OnResume::kNeedsAllow},
      {.name = "template",
       .type = ValueType::kChoice,
       .choices = {"alpaca", "default", "empty"},
       .planned_choices = templates_to_come(),
       .refused_choices = templates_with_media(),
       .section = kSection,
       .commands = kWithRows,
       .help = "prompt format; default empty, but a model with a chat template needs it given",
       .without_effect = only_with_supervision,
       .field = field(&RunConfig::data, &DataSettings::prompt_template)},
      {.name = "cutoff_len",
       .aliases = {"max_seq_length", "tokens"},
       .type = ValueType::kInteger,
       .range = {.min = 2},
       .unit = "tokens",
       .section = kSection,
       .commands = kRunFamily,
       .help = "longest row; default the smaller of 2048 and max_position_embeddings",
       .field = field(&RunConfig::data, &DataSettings::cutoff_len)},
      {.name = "train_on_prompt",
       .type = ValueType::kBoolean,
       .default_value = false,
       .section = kSection,
       .commands = kTrainAndEval,
       .help = "train the prompt's tokens as well as the answer's",
       .without_effect = only_with_supervision,
       .field = field(&RunConfig::data, &DataSettings::train_on_prompt)},
      {.name = "mask_history",
       .type = ValueType::kBoolean,
       .default_value = false,
       .section = kSection,
       .commands = kTrainAndEval,
       .help = "train the last answer of a row only; what is too long then loses its first turns",
       .without_effect = only_with_supervision,
       .field = field(&RunConfig::data, &DataSettings::mask_history)},
      {.name = "default_system",
       .section = kSection,
       .commands = kWithRows,
       .help = "system text of rows that bring none; default: the template's own, if it has one",
       .without_effect = only_with_supervision,
       .field = field(&RunConfig::data, &DataSettings::default_system)},
      {.name = "packing",
       .aliases = {"sft_packing"},
       .type = ValueType::kBoolean,
       .default_value = true,
       .section = kSection,
       .commands = kTrainAndEval,
       .help = "stage pt: join the documents and cut rows of cutoff_len tokens",
       .without_effect = only_with_pretraining,
       .field = field(&RunConfig::data, &DataSettings::packing)},
      {.name = "neat_packing",
       .type = ValueType::kBoolean,
       .default_value = false,
       .section = kSection,
       .commands = kTrainOnly,
       .help = "stage sft: join training rows up to cutoff_len; joined rows do not see each other, "
               "and a batch's rows are the joined ones",
       .without_effect = only_with_supervision,
       .field = field(&RunConfig::data, &DataSettings::neat_packing),
       .on_resume = OnResume::kByContent},
  };
}

}  // namespace

Declarations data_keys() {
  Declarations keys = source_keys();
  Declarations rows = row_keys();
  keys.insert(keys.end(), rows.begin(), rows.end());
  return keys;
}

Declarations text_tool_keys() {
  constexpr auto kTokenize = bit(Command::kTokenize);
  return {
      {.name = "no_special_tokens",
       .type = ValueType::kBoolean,
       .default_value = false,
       .section = kSection,
       .commands = kTokenize,
       .help = "leave out the tokens that the tokenizer puts around a text (BOS and the like)",
       .field = field(&RunConfig::no_special_tokens)},
      {.name = "decode",
       .type = ValueType::kBoolean,
       .default_value = false,
       .section = kSection,
       .commands = kTokenize,
       .help = "the other way: arrays of ids in, strings out",
       .field = field(&RunConfig::decode)},
      {.name = "vocab_size",
       .type = ValueType::kInteger,
       .range = {.min = 257},
       .unit = "tokens",
       .section = kSection,
       .commands = bit(Command::kTrainTokenizer),
       .required = bit(Command::kTrainTokenizer),
       .help = "entries of the new tokenizer: 256 bytes, special tokens and merges",
       .field = field(&RunConfig::vocab_size)},
  };
}

}  // namespace zeroth::config
