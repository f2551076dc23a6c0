// The model of a run, with the adapters that are given or asked for.
#include <algorithm>
#include <cstdlib>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "formats/safetensors.h"
#include "formats/verify_content.h"
#include "memory/tensor_tally.h"
#include "plan/trained_parts.h"
#include "shapes/check_weights.h"
#include "shapes/families.h"
#include "train/engine_options.h"
#include "worker/inputs.h"
#include <fmt/format.h>

namespace zeroth::worker {
namespace {

namespace fs = std::filesystem;
using formats::AdapterConfig;
using FilePtr = std::shared_ptr<const formats::TensorFile>;

// An adapter that was read.
struct GivenAdapter {
  std::string folder;
  AdapterConfig config;
  FilePtr file;
};

// An adapter that is read brings its own shape; asking for another one at the same time is a
// contradiction.
void refuse_other_shape(const config::RunConfig& config, const GivenAdapter& adapter) {
  const config::FinetuneSettings& asked = config.finetune;
  std::string differences;
  auto compare = [&](const char* key, double wanted, double stored) {
    if (config.is_given(key) && wanted != stored) {
      differences +=
          fmt::format("\n  {} {} (command line), {} in the adapter", key, wanted, stored);
    }
  };
  compare(
      "lora_rank", static_cast<double>(asked.lora_rank), static_cast<double>(adapter.config.rank));
  compare("lora_alpha", asked.lora_alpha, adapter.config.alpha);
  if (!differences.empty()) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("{} holds an adapter of another shape:{}\n  Leave these options out, or "
                    "train a new adapter.",
                    adapter.folder,
                    differences));
  }
}

fs::path last_part(const std::string& path) {
  const fs::path normal = fs::path(path).lexically_normal();
  return normal.has_filename() ? normal.filename() : normal.parent_path().filename();
}

// A folder's name proves nothing, but an adapter that fits by its shapes alone is worth a word.
void warn_of_other_base(const config::RunConfig& config, const GivenAdapter& adapter) {
  const std::string& base = adapter.config.base_model_name_or_path;
  const std::string model = config.model_as_given();
  if (!base.empty() && last_part(base) != last_part(model)) {
    log::warn(
        fmt::format("the adapter {} was trained on {}, and is added to {}\n  Its shapes are "
                    "compared; if the models are two, its numbers mean nothing here.",
                    adapter.folder,
                    base,
                    model));
  }
}

FilePtr open_weights_of(const std::string& folder) {
  auto file = std::make_shared<const formats::TensorFile>(
      formats::open_tensor_file(formats::adapter_weights_path(folder)));
  formats::verify_content(*file);  // small enough for every rank to read
  return file;
}

std::vector<GivenAdapter> given_adapters(const config::RunConfig& config,
                                         const shapes::ModelShape& shape) {
  std::vector<GivenAdapter> adapters;
  for (const std::string& folder : config.model.adapter_folders()) {
    adapters.push_back({folder, formats::read_adapter_config(folder), open_weights_of(folder)});
    warn_of_other_base(config, adapters.back());
    shapes::check_adapter(shape, adapters.back().config, *adapters.back().file);
  }
  return adapters;
}

// What was asked for and changes nothing would be lost in silence.
void refuse_idle_settings(const models::Model& model) {
  if (!model.lora.idle.empty()) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("settings of the adapter that do nothing on this model:\n    {}\n  Leave "
                    "them out, or correct them.",
                    join(model.lora.idle, "\n    ")));
  }
}

std::vector<models::AdapterToMerge> adapters_to_merge(const shapes::ModelShape& shape,
                                                      const std::vector<GivenAdapter>& adapters) {
  std::vector<models::AdapterToMerge> merged;
  for (const GivenAdapter& adapter : adapters) {
    merged.push_back({shapes::lora_targets(shape, adapter.config), adapter.file});
    log::info(fmt::format("merged into the base: {}", adapter.folder));
  }
  return merged;
}

// Takes the adapter that goes on, or is applied, out of the list.
std::optional<GivenAdapter> take_last(const config::RunConfig& config,
                                      std::vector<GivenAdapter>& adapters) {
  if (adapters.empty() || config.finetune.create_new_adapter) {
    return std::nullopt;
  }
  std::optional<GivenAdapter> last = std::move(adapters.back());
  adapters.pop_back();
  refuse_other_shape(config, *last);
  last->config.base_model_name_or_path = config.model_as_given();
  if (config.is_given("lora_dropout")) {
    last->config.dropout = config.finetune.lora_dropout;
  }
  return last;
}

bool adapts_embedding(const models::Model& model) {
  return model.lora.find("model.embed_tokens") != nullptr;
}

// Rows that were made for new tokens and stay at their mean are seldom meant.
void warn_of_new_rows_at_rest(const Inputs& inputs, const models::Model& model, bool trains) {
  const models::Parameter* weight = model.find("model.embed_tokens.weight");
  if (trains && inputs.adds_rows && weight != nullptr && !weight->trainable &&
      !adapts_embedding(model)) {
    log::warn(
        "the rows of the added tokens do not train: all of them stay at the mean\n  Train the "
        "embedding and the head: --additional_target embed_tokens,lm_head; with freeze "
        "--freeze_extra_modules embed_tokens,lm_head.");
  }
}

void refuse_idle_embedding_rate(const config::RunConfig& config, const models::Model& model) {
  if (config.is_given("loraplus_lr_embedding") && !adapts_embedding(model)) {
    throw Error(ErrorKind::kConfig,
                fmt::format("loraplus_lr_embedding {} does nothing: the embedding has no adapter\n"
                            "  Leave it out, or name embed_tokens in lora_target.",
                            config.finetune.loraplus_lr_embedding));
  }
}

// Fewer are trained than were asked for.
void warn_of_missing_layers(const config::RunConfig& config, const formats::ModelConfig& model) {
  const std::int64_t asked = std::abs(config.finetune.freeze_trainable_layers);
  if (asked > model.num_hidden_layers) {
    log::warn(
        fmt::format("freeze_trainable_layers {}: the model has {} blocks, and all are trained",
                    config.finetune.freeze_trainable_layers,
                    model.num_hidden_layers));
  }
}

// LoRA+'s rate of an embedding is a rate, and Parameter has a factor of the schedule's.
void set_rates(const config::RunConfig& config, models::Model& model) {
  if (!config.finetune.loraplus_lr_ratio) {
    return;
  }
  refuse_idle_embedding_rate(config, model);
  const double rate = config.optimizer.learning_rate;
  const double embedding = config.finetune.loraplus_lr_embedding;
  models::set_loraplus_rates(
      model, *config.finetune.loraplus_lr_ratio, rate > 0 ? embedding / rate : 0);
}

// As the settings say, with the adapter that goes on; nullopt: no adapter.
std::optional<AdapterConfig> adapter_of(const config::RunConfig& config,
                                        const std::optional<GivenAdapter>& last,
                                        bool trains) {
  if (last) {
    return last->config;
  }
  const bool lora = config.finetune.type == config::FinetuningType::kLora;
  return trains && lora ? std::optional(plan::lora_settings(config)) : std::nullopt;
}

// A tied model's files may hold the head once more, as Transformers writes it; another head would
// be lost.
void warn_of_unused_head(const formats::ModelConfig& model, const formats::ModelWeights& weights) {
  const std::string head = "lm_head.weight";
  if (!model.tie_word_embeddings || !weights.contains(head)) {
    return;
  }
  const auto of_head = weights.at(head).bytes;
  const auto of_embedding = weights.at("model.embed_tokens.weight").bytes;
  if (!std::equal(of_head.begin(), of_head.end(), of_embedding.begin(), of_embedding.end())) {
    log::warn(
        "lm_head.weight differs from the embedding and is not used: config.json says "
        "tie_word_embeddings true\n  Transformers does the same. If the head is the model's own, "
        "write false there.");
  }
}

std::shared_ptr<const formats::ModelWeights> open_base(const config::RunConfig& config,
                                                       const Inputs& inputs,
                                                       std::int64_t rank = 0,
                                                       std::int64_t ranks = 1) {
  auto weights = std::make_shared<const formats::ModelWeights>(config.model.model_name_or_path);
  formats::ModelConfig as_stored = inputs.model_config;
  as_stored.vocab_size = inputs.stored_rows;
  shapes::check_weights(shapes::model_shape(as_stored), *weights);
  if (rank == 0) {  // one look for all
    warn_of_unused_head(as_stored, *weights);
  }
  formats::verify_content(*weights, rank, ranks);
  return weights;
}

}  // namespace

LoadedModel load_model(const config::RunConfig& config,
                       const Inputs& inputs,
                       bool trains,
                       comm::Communicator& comm) {
  auto tally = std::make_shared<memory::Tally>();
  const memory::TensorScope counted(tally, memory::Purpose::kWeights);
  const shapes::ModelShape shape = shapes::model_shape(inputs.model_config);
  const auto weights = open_base(config, inputs, comm.on_host().rank, comm.on_host().size);
  std::vector<GivenAdapter> adapters = given_adapters(config, shape);
  const std::optional<GivenAdapter> last = take_last(config, adapters);
  LoadedModel loaded{.adapter = adapter_of(config, last, trains), .tally = std::move(tally)};
  models::ModelOptions options{.dtype = train::compute_dtype(config),
                               .lora = loaded.adapter,
                               .merge = adapters_to_merge(shape, adapters),
                               .trainable = trains,
                               .seed = config.seed};
  if (trains && config.finetune.type == config::FinetuningType::kFreeze) {
    options.freeze = plan::freeze_settings(config.finetune);
    warn_of_missing_layers(config, inputs.model_config);
  }
  loaded.model = models::load_model(inputs.model_config, weights, options);
  if (loaded.adapter) {
    loaded.adapter->target_modules = loaded.model.lora.target_modules;
  }
  if (last) {
    models::load_adapter(loaded.model, *last->file);
  } else if (loaded.adapter) {
    refuse_idle_settings(loaded.model);
  }
  warn_of_new_rows_at_rest(inputs, loaded.model, trains);
  set_rates(config, loaded.model);
  comm.barrier("check of the weights");  // what one rank proved, all may use
  return loaded;
}

OpenedBase open_base_and_adapters(const config::RunConfig& config, const Inputs& inputs) {
  const shapes::ModelShape shape = shapes::model_shape(inputs.model_config);
  OpenedBase opened{.files = open_base(config, inputs), .adapters = {}, .last = {}};
  const std::vector<GivenAdapter> adapters = given_adapters(config, shape);
  opened.adapters = adapters_to_merge(shape, adapters);
  opened.last = adapters.back().config;
  return opened;
}

}  // namespace zeroth::worker
