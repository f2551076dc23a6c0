#include "worker/inputs.h"

#include <algorithm>

#include "base/check.h"
#include "base/error.h"
#include "base/log.h"
#include "formats/safetensors.h"
#include "formats/verify_content.h"
#include "memory/tensor_tally.h"
#include "shapes/check_weights.h"
#include "shapes/families.h"
#include "train/engine_options.h"
#include "worker/tables.h"
#include <fmt/format.h>

namespace zeroth::worker {
namespace {

namespace fs = std::filesystem;

// Whether the user asked for this value (it is not a default or derived from one).
bool is_given(const config::RunConfig& config, const std::string& key) {
  return std::any_of(
      config.settings.begin(), config.settings.end(), [&](const config::SettingInForce& setting) {
        return setting.key == key && setting.given;
      });
}

// An adapter that is read brings its own shape; asking for another one at the same time is a
// contradiction.
void refuse_other_shape(const config::RunConfig& config, const formats::AdapterConfig& adapter) {
  const config::FinetuneSettings& asked = config.finetune;
  std::string differences;
  auto compare = [&](const char* key, double wanted, double stored) {
    if (is_given(config, key) && wanted != stored) {
      differences +=
          fmt::format("\n  {} {} (command line), {} in the adapter", key, wanted, stored);
    }
  };
  compare("lora_rank", static_cast<double>(asked.lora_rank), static_cast<double>(adapter.rank));
  compare("lora_alpha", asked.lora_alpha, adapter.alpha);
  if (!differences.empty()) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("{} holds an adapter of another shape:{}\n  Leave these options out, or "
                    "train a new adapter.",
                    config.model.adapter_name_or_path,
                    differences));
  }
}

formats::AdapterConfig new_adapter(const config::RunConfig& config) {
  return {.base_model_name_or_path = config.model.model_name_or_path,
          .rank = config.finetune.lora_rank,
          .alpha = config.finetune.lora_alpha,
          .dropout = config.finetune.lora_dropout,
          .target_modules = config.finetune.lora_targets};
}

std::optional<formats::AdapterConfig> adapter_of(const config::RunConfig& config, bool trains) {
  const std::string& folder = config.model.adapter_name_or_path;
  if (!folder.empty()) {
    formats::AdapterConfig adapter = formats::read_adapter_config(folder);
    refuse_other_shape(config, adapter);
    adapter.base_model_name_or_path = config.model.model_name_or_path;
    if (is_given(config, "lora_dropout")) {
      adapter.dropout = config.finetune.lora_dropout;
    }
    return adapter;
  }
  const bool lora = config.finetune.type == config::FinetuningType::kLora;
  return trains && lora ? std::optional(new_adapter(config)) : std::nullopt;
}

}  // namespace

void report_counts(const config::RunConfig& config,
                   const Inputs& inputs,
                   const data::RowCounts& counts) {
  const bool documents = config.command != config::Command::kPredict &&
                         config.data.stage == config::TrainStage::kPretrain;
  log::info(counts_line(counts, documents ? "documents" : "rows"));
  if (const auto bos = inputs.tokenizer.bos_id(); counts.bos_in_text > 0 && bos) {
    log::warn(
        fmt::format("{} rows spell \"{}\" in their text, and the tokenizer puts it in front "
                    "of each row as well\n  Take it out of the data, or it stands there twice.",
                    counts.bos_in_text,
                    inputs.tokenizer.token_of(*bos)));
  }
}

void report_rows(const config::RunConfig& config,
                 const Inputs& inputs,
                 const data::Dataset& dataset) {
  report_counts(config, inputs, dataset.counts);
  const std::int64_t positions = inputs.model_config.max_position_embeddings;
  const auto longer = std::count_if(
      dataset.examples.begin(), dataset.examples.end(), [&](const data::Example& example) {
        return static_cast<std::int64_t>(example.input_ids.size()) > positions;
      });
  if (longer > 0 && inputs.model_config.has_dynamic_rope()) {
    throw Error(ErrorKind::kNotSupported,
                fmt::format("{} rows are longer than the {} positions that the model was made for, "
                            "and its rope type \"dynamic\" beyond them is not supported: results "
                            "would depend on the longest row seen\n  Lower --cutoff_len to {}.",
                            longer,
                            positions,
                            positions));
  }
  if (longer > 0) {
    log::warn(
        fmt::format("{} rows are longer than the {} positions that the model was made for "
                    "(max_position_embeddings)\n  Lower --cutoff_len to {} to cut them.",
                    longer,
                    positions,
                    positions));
  }
}

LoadedModel load_model(const config::RunConfig& config,
                       const Inputs& inputs,
                       bool trains,
                       comm::Communicator& comm) {
  auto tally = std::make_shared<memory::Tally>();
  const memory::TensorScope counted(tally, memory::Purpose::kWeights);
  const auto weights =
      std::make_shared<const formats::ModelWeights>(config.model.model_name_or_path);
  shapes::check_weights(shapes::model_shape(inputs.model_config), *weights);
  formats::verify_content(*weights, comm.on_host().rank, comm.on_host().size);
  LoadedModel loaded{.adapter = adapter_of(config, trains), .tally = std::move(tally)};
  models::ModelOptions options{
      .dtype = train::compute_dtype(config), .trainable = trains, .seed = config.seed};
  if (loaded.adapter) {
    options.lora = shapes::LoraSettings{.rank = loaded.adapter->rank,
                                        .alpha = loaded.adapter->alpha,
                                        .dropout = loaded.adapter->dropout,
                                        .targets = loaded.adapter->target_modules};
  }
  loaded.model = models::load_model(inputs.model_config, weights, options);
  if (loaded.adapter) {
    loaded.adapter->target_modules = loaded.model.lora.target_modules;
  }
  if (!config.model.adapter_name_or_path.empty()) {
    const formats::SafetensorsFile file(fs::path(config.model.adapter_name_or_path) /
                                        "adapter_model.safetensors");
    shapes::check_adapter(loaded.model.shape, *loaded.adapter, file);
    formats::verify_content(file);  // small enough for every rank to read
    models::load_adapter(loaded.model, file);
  }
  comm.barrier("check of the weights");  // what one rank proved, all may use
  return loaded;
}

std::unique_ptr<engine::Engine> inference_engine(const config::RunConfig& config,
                                                 LoadedModel& loaded,
                                                 std::shared_ptr<comm::Communicator> comm) {
  // Nothing is trainable, so the optimizer holds no state and is never asked.
  return std::make_unique<engine::Engine>(
      loaded.model.units,
      optim::make_sgd({}),
      engine::EngineOptions{.dtype = train::compute_dtype(config),
                            .share_frozen = config.model.share_frozen},
      std::move(comm),
      loaded.tally);
}

}  // namespace zeroth::worker
