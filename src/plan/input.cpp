#include "plan/input.h"

#include <algorithm>

#include "base/error.h"
#include "config/offload_names.h"
#include "config/schema.h"
#include "formats/adapter.h"
#include "plan/trained_parts.h"
#include <fmt/format.h>

namespace zeroth::plan {
namespace {

using config::RunConfig;

constexpr std::int64_t kMostRanksPerNode = 8;

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

std::int64_t bytes_of(config::NumberType type) {
  return type == config::NumberType::kFp32 ? 4 : 2;
}

void fill_types(const RunConfig& config, PlanInput& input) {
  const config::Precision precision = config.model.precision;
  input.compute_type = precision == config::Precision::kFp16   ? "fp16"
                       : precision == config::Precision::kBf16 ? "bf16"
                                                               : "fp32";
  input.compute_bytes = precision == config::Precision::kFp32 ? 4 : 2;
  input.gradient_bytes = bytes_of(config.zero.grad_accum);
  input.communication_bytes = bytes_of(config.zero.communication);
}

void fill_optimizer(const RunConfig& config, PlanInput& input) {
  const Json name = asked(config, "optim");
  input.optimizer = name.is_string() ? name.get<std::string>() : input.optimizer;
  switch (config.optimizer.kind) {
    case config::OptimizerKind::kSgd:
      input.num_moments = config.optimizer.momentum != 0 ? 1 : 0;
      return;
    case config::OptimizerKind::kLion:
    case config::OptimizerKind::kAdagrad:
      input.num_moments = 1;
      return;
    default:
      input.num_moments = 2;
  }
}

Place place_of(const Json& device) {
  return device == "cpu" ? Place::kHost : device == "nvme" ? Place::kFiles : Place::kDevice;
}

void fill_sharding(const RunConfig& config, PlanInput& input) {
  input.stage = static_cast<int>(config.zero.stage);
  input.reduce_every_micro_step = config.zero.reduce_every_micro_step;
  input.overlap = config.zero.overlap_comm;
  input.prefetch = {.ahead = config.zero.prefetch_elements, .live = config.zero.max_live_elements};
  input.persistence_elements = config.zero.persistence_elements;
  input.offload = {.optimizer = place_of(asked(config, config::kOptimizerDevice)),
                   .parameters = place_of(asked(config, config::kParamDevice))};
  input.streaming = {.sub_group_elements = config.zero.sub_group_elements,
                     .reads_ahead = config.offload.reads_ahead,
                     .writes_behind = config.offload.writes_behind,
                     .parameter_buffers = config.offload.parameter_buffers,
                     .optimizer_share = config.offload.optimizer_ratio,
                     .parameters_kept = config.offload.parameters_in_memory};
  input.gradient_checkpointing = config.finetune.gradient_checkpointing;
  input.fast_kernels = config.kernels == config::KernelChoice::kAuto;
}

void fill_machine(const RunConfig& config, PlanInput& input) {
  input.ranks = config.grid.world_size;
  const bool all_here = config.launch.kind == config::LaunchKind::kHost;  // a rank asks
  input.ranks_per_node = config.plan.ranks_per_node > 0 ? config.plan.ranks_per_node
                         : all_here                     ? input.ranks
                                                        : std::min(input.ranks, kMostRanksPerNode);
  input.own_memory = !config.plan.device_memory.empty();
  input.share_frozen = config.model.share_frozen && !input.own_memory;
}

// By what the model's config.json says of its weights.
bool reads_as_stored(const RunConfig& config, const PlanInput& input) {
  const config::Precision precision = config.model.precision;
  const formats::DType computing = precision == config::Precision::kFp16   ? formats::DType::kF16
                                   : precision == config::Precision::kBf16 ? formats::DType::kBF16
                                                                           : formats::DType::kF32;
  const std::size_t continued = config.finetune.create_new_adapter ? 0 : 1;
  const bool merges = config.model.adapter_folders().size() > continued;
  return input.model.stored_dtype == computing && !merges;
}

// The packed layouts are those of processors.
void fill_packing(const RunConfig& config, PlanInput& input) {
  input.reads_file_as_stored = reads_as_stored(config, input);
  const bool packs = config.kernels == config::KernelChoice::kAuto &&
                     config.pack_weights != config::PackWeights::kOff && !input.own_memory;
  input.chooses_packed = packs && config.pack_weights == config::PackWeights::kAuto;
  input.packed = !packs                 ? PackedFor::kNothing
                 : input.chooses_packed ? PackedFor::kBoth
                                        : PackedFor::kForward;
}

void fill_rows(const RunConfig& config, PlanInput& input) {
  input.micro_batch_rows = config.batch.micro_batch_rows;
  input.accumulation = config.batch.accumulation;
  input.row_tokens = config.data.longest_row(input.model.max_position_embeddings);
  input.joins_rows =
      config.data.neat_packing && config.data.stage == config::TrainStage::kSupervised;
  const bool evaluates = config.data.val_size > 0 || !config.data.eval_dataset.empty();
  input.eval_rows = evaluates ? config.batch.eval_rows : 0;
}

void fill_training(const RunConfig& config, PlanInput& input) {
  const std::vector<std::string> folders = config.model.adapter_folders();
  if (config.finetune.type == config::FinetuningType::kFreeze) {
    input.freeze = freeze_settings(config.finetune);
  } else if (config.finetune.type == config::FinetuningType::kLora) {
    const bool is_new = folders.empty() || config.finetune.create_new_adapter;
    input.lora = is_new ? lora_settings(config) : formats::read_adapter_config(folders.back());
  }
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
  fill_training(config, input);
  fill_types(config, input);
  fill_optimizer(config, input);
  fill_sharding(config, input);
  fill_machine(config, input);
  fill_packing(config, input);
  fill_rows(config, input);
  return input;
}

}  // namespace zeroth::plan
