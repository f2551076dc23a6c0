#include "inputs/data_inputs.h"

#include <algorithm>

#include "data/dataset_info.h"
#include "data/join_rows.h"

namespace zeroth::inputs {
namespace {

namespace fs = std::filesystem;

data::LoadSettings load_settings(const config::DataSettings& settings,
                                 const formats::ModelConfig& model) {
  const bool pretrains = settings.stage == config::TrainStage::kPretrain;
  return {.stage = pretrains ? data::Stage::kPretrain : data::Stage::kSupervised,
          .prompt_template = settings.prompt_template.empty() ? "empty" : settings.prompt_template,
          .cutoff_len = settings.longest_row(model.max_position_embeddings),
          .max_samples = settings.max_samples,
          .embedding_rows = model.vocab_size,
          .columns = settings.dataset_columns.empty()
                         ? data::RowColumns{}
                         : data::named_columns(settings.dataset_columns, "dataset_columns"),
          .default_system = settings.default_system,
          .trains = settings.train_on_prompt ? data::Trains::kEverything
                    : settings.mask_history  ? data::Trains::kLastAnswer
                                             : data::Trains::kAnswers,
          .skip_bad_rows = settings.skip_bad_rows,
          .packing = settings.packing};
}

// Where the dataset_info.json is that knows a name which is no file.
std::optional<fs::path> info_folder(const fs::path& name) {
  std::error_code error;
  if (fs::exists(name, error) || name.has_extension()) {
    return std::nullopt;
  }
  std::vector<fs::path> folders{name.parent_path()};
  if (!name.has_parent_path()) {
    folders.emplace_back("data");
  }
  for (const fs::path& folder : folders) {
    if (fs::exists(folder / data::kDatasetInfo, error)) {
      return folder;
    }
  }
  return std::nullopt;
}

// The sizes of all files together; nullopt if one is missing.
std::optional<std::uintmax_t> total_bytes(const std::vector<fs::path>& files) {
  std::uintmax_t bytes = 0;
  for (const fs::path& file : files) {
    std::error_code error;
    if (!fs::is_regular_file(file, error)) {
      return std::nullopt;
    }
    bytes += fs::file_size(file, error);
  }
  return bytes;
}

}  // namespace

DataInputs open_data_inputs(const config::RunConfig& config) {
  DataInputs inputs{open_model_inputs(config)};
  inputs.load = load_settings(config.data, inputs.model_config);
  inputs.pad_id = inputs.tokenizer.pad_id().value_or(inputs.tokenizer.eos_id().value_or(0));
  return inputs;
}

data::Sources sources_of(const std::vector<std::string>& names) {
  data::Sources sources;
  for (const std::string& name : names) {
    const auto folder = info_folder(name);
    sources.push_back(folder ? data::named_source(*folder, fs::path(name).filename())
                             : data::Source(name));
  }
  return sources;
}

namespace {

// The training rows as they are batched: rows set aside are not joined, so that they stay the same.
void join_if_asked(const config::RunConfig& config,
                   const DataInputs& inputs,
                   data::Dataset& train) {
  if (config.data.neat_packing && inputs.load.stage == data::Stage::kSupervised) {
    data::join_rows(train, inputs.load.cutoff_len);
  }
}

}  // namespace

TrainingData load_training_data(const config::RunConfig& config, const DataInputs& inputs) {
  TrainingData data{
      .train = data::load_examples(sources_of(config.data.dataset), inputs.tokenizer, inputs.load)};
  if (config.data.val_size > 0) {
    data.validation = data::split_validation(data.train, config.data.val_size, config.seed);
  } else if (!config.data.eval_dataset.empty()) {
    data.validation =
        data::load_examples(sources_of(config.data.eval_dataset), inputs.tokenizer, inputs.load);
  }
  join_if_asked(config, inputs, data.train);
  return data;
}

std::optional<std::int64_t> count_training_rows(const config::RunConfig& config,
                                                std::uintmax_t most_bytes) {
  const fs::path folder = config.model.model_name_or_path;
  if (config.data.dataset.empty() || folder.empty()) {
    return std::nullopt;
  }
  std::vector<fs::path> files{folder / "config.json", folder / "tokenizer.json"};
  for (const data::Source& source : sources_of(config.data.dataset)) {
    files.push_back(source.file);
  }
  const std::optional<std::uintmax_t> bytes = total_bytes(files);
  if (!bytes || *bytes > most_bytes) {
    return std::nullopt;
  }
  const DataInputs inputs = open_data_inputs(config);
  data::Dataset train =
      data::load_examples(sources_of(config.data.dataset), inputs.tokenizer, inputs.load);
  if (config.data.val_size > 0) {
    (void)data::split_validation(train, config.data.val_size, config.seed);
  }
  join_if_asked(config, inputs, train);
  return static_cast<std::int64_t>(train.examples.size());
}

}  // namespace zeroth::inputs
