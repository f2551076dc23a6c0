#include "plan/input.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "config/schema.h"
#include "formats/adapter.h"
#include <fmt/format.h>

namespace zeroth::plan {
namespace {

using config::RunConfig;

// As the loader cuts rows (DESIGN's default, LLaMA-Factory's name).
constexpr std::int64_t kLongestDefaultRow = 2048;
constexpr std::int64_t kMostRanksPerNode = 8;

constexpr auto kOptimizerPlace = "zero_optimization.offload_optimizer.device";
constexpr auto kParameterPlace = "zero_optimization.offload_param.device";
constexpr auto kGradientType = "data_types.grad_accum_dtype";
constexpr auto kCadence = "reduce_every_micro_step";
constexpr auto kRecompute = "gradient_checkpointing";
constexpr std::array kPlannedFor{
    "fp16", "optim", kRecompute, kGradientType, kOptimizerPlace, kParameterPlace};

template <typename Entries>
const Json* value_in(const Entries& entries, const std::string& key) {
  const auto found = std::find_if(
      entries.begin(), entries.end(), [&](const auto& entry) { return entry.key == key; });
  return found == entries.end() ? nullptr : &found->value;
}

// In force, planned, or of no effect on this machine; null where the key is unknown or not set.
Json asked(const RunConfig& config, const std::string& name) {
  const config::Declaration* key = config::find_declaration(name);
  if (key == nullptr) {
    return nullptr;
  }
  for (const Json* value : {value_in(config.settings, key->name),
                            value_in(config.planned, key->name),
                            value_in(config.without_effect, key->name)}) {
    if (value != nullptr) {
      return *value;
    }
  }
  return nullptr;
}

void fill_types(const RunConfig& config, PlanInput& input) {
  const bool fp16 = asked(config, "fp16") == true;
  const bool bf16 = config.model.precision == config::Precision::kBf16;
  input.compute_type = fp16 ? "fp16" : bf16 ? "bf16" : "fp32";
  input.compute_bytes = fp16 || bf16 ? 2 : 4;
  const Json sums = asked(config, kGradientType);
  input.gradient_bytes = sums == "bf16" || sums == "fp16" ? 2 : 4;
}

void fill_optimizer(const RunConfig& config, PlanInput& input) {
  static const std::map<std::string, std::int64_t> moments{
      {"adamw_torch", 2}, {"lamb", 2}, {"adagrad", 1}, {"lion", 1}};
  const Json name = asked(config, "optim");
  input.optimizer = name.is_string() ? name.get<std::string>() : input.optimizer;
  const auto known = moments.find(input.optimizer);
  const bool has_momentum = config.optimizer.momentum != 0;
  input.num_moments = input.optimizer == "sgd" ? static_cast<std::int64_t>(has_momentum)
                      : known != moments.end() ? known->second
                                               : 2;
}

Place place_of(const Json& device) {
  return device == "cpu" ? Place::kHost : device == "nvme" ? Place::kFiles : Place::kDevice;
}

// Where nobody says how often gradients are reduced, the stage does.
std::optional<bool> given_cadence(const RunConfig& config) {
  const config::Declaration* key = config::find_declaration(kCadence);
  const auto said = [&](const auto& setting) { return key != nullptr && setting.key == key->name; };
  const auto found = std::find_if(config.settings.begin(), config.settings.end(), said);
  const bool given = found != config.settings.end() && found->given && found->value.is_boolean();
  return given ? std::optional(found->value.get<bool>()) : std::nullopt;
}

void fill_sharding(const RunConfig& config, PlanInput& input) {
  input.stage = static_cast<int>(config.zero.stage);
  input.reduce_every_micro_step = given_cadence(config);
  input.offload = {.optimizer = place_of(asked(config, kOptimizerPlace)),
                   .parameters = place_of(asked(config, kParameterPlace))};
  input.gradient_checkpointing = asked(config, kRecompute) == true;
}

void fill_machine(const RunConfig& config, PlanInput& input) {
  input.ranks = config.grid.world_size;
  const bool all_here = config.launch.kind == config::LaunchKind::kHost;  // a rank asks
  input.ranks_per_node = config.plan.ranks_per_node > 0 ? config.plan.ranks_per_node
                         : all_here                     ? input.ranks
                                                        : std::min(input.ranks, kMostRanksPerNode);
  input.own_memory = !config.plan.device_memory.empty();
}

void fill_rows(const RunConfig& config, PlanInput& input) {
  input.micro_batch_rows = config.batch.micro_batch_rows;
  input.accumulation = config.batch.accumulation;
  input.row_tokens = config.data.cutoff_len > 0
                         ? config.data.cutoff_len
                         : std::min(kLongestDefaultRow, input.model.max_position_embeddings);
  const bool evaluates = config.data.val_size > 0 || !config.data.eval_dataset.empty();
  input.eval_rows = evaluates ? config.batch.eval_rows : 0;
}

std::optional<shapes::LoraSettings> lora_of(const RunConfig& config) {
  if (config.finetune.type != config::FinetuningType::kLora) {
    return std::nullopt;
  }
  if (!config.model.adapter_name_or_path.empty()) {
    const formats::AdapterConfig adapter =
        formats::read_adapter_config(config.model.adapter_name_or_path);
    return shapes::LoraSettings{.rank = adapter.rank,
                                .alpha = adapter.alpha,
                                .dropout = adapter.dropout,
                                .targets = adapter.target_modules};
  }
  return shapes::LoraSettings{.rank = config.finetune.lora_rank,
                              .alpha = config.finetune.lora_alpha,
                              .dropout = config.finetune.lora_dropout,
                              .targets = config.finetune.lora_targets};
}

void refuse_divided_models(const RunConfig& config) {
  const config::GridInForce& grid = config.grid;
  if (grid.dp != grid.world_size) {
    throw Error(ErrorKind::kNotSupported,
                fmt::format("no plan is made yet for ranks that divide a model or a row among "
                            "themselves (pipeline {}, tensor parallel {}, sequence parallel {})\n"
                            "  Plan for ZeRO instead: --zero_stage 3 divides the weights too.",
                            grid.pp,
                            grid.tp,
                            grid.sp));
  }
}

}  // namespace

PlanInput input_of(const RunConfig& config, const formats::ModelConfig& model) {
  refuse_divided_models(config);
  PlanInput input;
  input.model = model;
  input.lora = lora_of(config);
  fill_types(config, input);
  fill_optimizer(config, input);
  fill_sharding(config, input);
  fill_machine(config, input);
  fill_rows(config, input);
  return input;
}

bool is_planned_for(const std::string& key) {
  return std::find(kPlannedFor.begin(), kPlannedFor.end(), key) != kPlannedFor.end();
}

}  // namespace zeroth::plan
