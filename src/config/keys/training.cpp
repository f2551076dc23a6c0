#include <string_view>

#include "base/error.h"
#include "base/text.h"
#include "config/field.h"
#include "config/keys/keys.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

constexpr auto kBatchSection = "Batch";
constexpr auto kOptimizerSection = "Optimizer";
constexpr auto kScheduleSection = "Schedule";

constexpr auto kOptimizersToCome = "AdamW and SGD are built so far";
constexpr auto kCompressed =
    "compressed communication changes the update, and no stage of ZeRO goes with it; use AdamW";
constexpr auto kMaximalUpdate = "muP needs widths that a model folder does not tell; use AdamW";
constexpr auto kQuantised = "moments are kept in 32 bits; use adamw_torch, sharded by --zero_stage";

std::optional<std::string> only_with_adamw(const Values& values) {
  if (values.is("optim", "sgd")) {
    return "optim is sgd";
  }
  return std::nullopt;
}

std::optional<std::string> only_with_sgd(const Values& values) {
  if (!values.is("optim", "sgd")) {
    return "optim is not sgd";
  }
  return std::nullopt;
}

std::optional<std::string> only_when_evaluating(const Values& values) {
  const bool has_rows = values.given("eval_dataset") || values["val_size"].get<double>() > 0;
  if (values.command() == Command::kTrain && !has_rows) {
    return "there are no rows to evaluate on: neither eval_dataset nor val_size is given";
  }
  return std::nullopt;
}

std::optional<std::string> only_with_ranks(const Values& values) {
  if (values["ranks"].get<std::int64_t>() == 1) {
    return "one rank has nobody to share with";
  }
  return std::nullopt;
}

std::vector<Part> betas(const Json& value) {
  if (value == kAuto) {
    return {{"adam_beta1", kAuto}, {"adam_beta2", kAuto}};
  }
  if (value.size() != 2) {
    throw Error(ErrorKind::kConfig, "takes two numbers: adam_beta1 and adam_beta2");
  }
  return {{"adam_beta1", value[0]}, {"adam_beta2", value[1]}};
}

// "momentum=0.9": each part is a setting of its own.
std::vector<Part> optimizer_arguments(const Json& value) {
  std::vector<Part> parts;
  for (const std::string& part : split(value.get<std::string>(), ',')) {
    const std::string_view word = trim(part);
    constexpr std::string_view kMomentum = "momentum=";
    if (word.substr(0, kMomentum.size()) != kMomentum) {
      throw Error(ErrorKind::kConfig, fmt::format("takes momentum=VALUE, not \"{}\"", part));
    }
    const ParsedValue parsed =
        parse_value(*find_declaration("sgd_momentum"), word.substr(kMomentum.size()));
    if (!parsed.error.empty()) {
      throw Error(ErrorKind::kConfig, "momentum " + parsed.error);
    }
    parts.push_back({"sgd_momentum", parsed.value});
  }
  return parts;
}

Declarations batch_keys() {
  return {
      {.name = "per_device_train_batch_size",
       .aliases = {"batch_size", "micro_batch_size", "per_gpu_train_batch_size"},
       .deepspeed = {"train_micro_batch_size_per_gpu"},
       .old_names = {"per_gpu_train_batch_size"},
       .type = ValueType::kInteger,
       .range = kRowCount,
       .default_value = 8,
       .may_be_auto = true,
       .unit = "rows",
       .section = kBatchSection,
       .commands = kTrainOnly,
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
       .commands = kTrainOnly,
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
       .commands = kTrainOnly,
       .help =
           "rows of one update over all ranks: micro-batch x accumulation x data-parallel ranks"},
      {.name = "per_device_eval_batch_size",
       .aliases = {"eval_batch_size", "per_gpu_eval_batch_size"},
       .old_names = {"per_gpu_eval_batch_size"},
       .type = ValueType::kInteger,
       .range = kRowCount,
       .default_value = 8,
       .unit = "rows",
       .section = kBatchSection,
       .commands = kRunFamily,
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
       .commands = kRunFamily,
       .help = "processes on this host; under mpirun or srun their own number",
       .field = field(&RunConfig::batch, &BatchSettings::world_size)},
      {.name = "zero_stage",
       .deepspeed = {"zero_optimization.stage"},
       .accelerate = {"deepspeed_config.zero_stage"},
       .type = ValueType::kInteger,
       .range = {.min = 0, .max = 3},
       .default_value = 0,
       .section = kBatchSection,
       .commands = kRunFamily,
       .help = "what ranks keep in shards: 1 optimizer state, 2 gradients too, 3 weights too",
       .without_effect = only_with_ranks,
       .field = field(&RunConfig::zero, &ZeroSettings::stage)},
      {.name = "reduce_bucket_size",
       .deepspeed = {"zero_optimization.reduce_bucket_size"},
       .type = ValueType::kInteger,
       .range = {.min = 0, .max = 1e15},
       .default_value = 500000000,
       .may_be_auto = true,
       .unit = "elements",
       .section = kBatchSection,
       .commands = kTrainOnly,
       .help =
           "gradients of one reduction between ranks, 0: a parameter at a time; changes no number",
       .without_effect = only_with_ranks,
       .field = field(&RunConfig::zero, &ZeroSettings::reduce_bucket_elements)},
      {.name = "start_timeout",
       .type = ValueType::kNumber,
       .range = {.min = 0, .min_excluded = true},
       .default_value = 120.0,
       .unit = "seconds",
       .section = kBatchSection,
       .commands = kRunFamily,
       .help = "how long ranks wait for each other at the start",
       .without_effect = only_with_ranks,
       .field = field(&RunConfig::launch, &LaunchSettings::start_timeout_s)},
  };
}

Declarations optimizer_keys() {
  return {
      {.name = "optim",
       .aliases = {"optimizer"},
       .deepspeed = {"optimizer.type"},
       .type = ValueType::kChoice,
       .choices = choices_of<OptimizerKind>(),
       .synonyms = {{"adamw", "adamw_torch"},
                    {"adam",
                     "adamw_torch"},  // as in DeepSpeed: adam_w_mode is on unless switched off
                    {"adamw_torch_fused", "adamw_torch"},
                    {"adamw_hf", "adamw_torch"}},
       .planned_choices = {{"lion", kOptimizersToCome},
                           {"lamb", kOptimizersToCome},
                           {"adagrad", kOptimizersToCome}},
       .refused_choices =
           {{"onebitadam", kCompressed},
            {"zerooneadam", kCompressed},
            {"onebitlamb", kCompressed},
            {"muadam", kMaximalUpdate},
            {"muadamw", kMaximalUpdate},
            {"musgd", kMaximalUpdate},
            {"muon", "its orthogonalised update is not built; use AdamW"},
            {"adafactor", "its factored moments do not fit flat shards; use AdamW"},
            {"adamw_bnb_8bit", kQuantised},
            {"adamw_8bit", kQuantised},
            {"paged_adamw_8bit", kQuantised},
            {"paged_adamw_32bit",
             "paging is the work of offload_optimizer here; use adamw_torch with it"},
            {"adamw_apex_fused", "Apex is not used; adamw_torch is fused already"}},
       .default_value = "adamw_torch",
       .section = kOptimizerSection,
       .commands = kTrainOnly,
       .help = "AdamW (Adam, adamw and adamw_torch_fused mean the same), or SGD",
       .field = field(&RunConfig::optimizer, &OptimizerSettings::kind)},
      {.name = "learning_rate",
       .aliases = {"lr"},
       .deepspeed = {"optimizer.params.lr"},
       .type = ValueType::kNumber,
       .range = kNotNegative,
       .default_value = 5e-5,
       .may_be_auto = true,
       .section = kOptimizerSection,
       .commands = kTrainOnly,
       .help = "the highest learning rate of the schedule",
       .field = field(&RunConfig::optimizer, &OptimizerSettings::learning_rate)},
      {.name = "weight_decay",
       .deepspeed = {"optimizer.params.weight_decay"},
       .type = ValueType::kNumber,
       .range = kNotNegative,
       .default_value = 0.0,
       .may_be_auto = true,
       .section = kOptimizerSection,
       .commands = kTrainOnly,
       .help = "decoupled weight decay; norms and biases are not decayed",
       .field = field(&RunConfig::optimizer, &OptimizerSettings::weight_decay)},
      {.name = "adam_beta1",
       .type = ValueType::kNumber,
       .range = {.min = 0, .max = 1, .max_excluded = true},
       .default_value = 0.9,
       .may_be_auto = true,
       .section = kOptimizerSection,
       .commands = kTrainOnly,
       .help = "decay of AdamW's first moment",
       .without_effect = only_with_adamw,
       .field = field(&RunConfig::optimizer, &OptimizerSettings::beta1)},
      {.name = "adam_beta2",
       .type = ValueType::kNumber,
       .range = {.min = 0, .max = 1, .max_excluded = true},
       .default_value = 0.999,
       .may_be_auto = true,
       .section = kOptimizerSection,
       .commands = kTrainOnly,
       .help = "decay of AdamW's second moment",
       .without_effect = only_with_adamw,
       .field = field(&RunConfig::optimizer, &OptimizerSettings::beta2)},
      {.name = "adam_epsilon",
       .deepspeed = {"optimizer.params.eps"},
       .type = ValueType::kNumber,
       .range = kPositive,
       .default_value = 1e-8,
       .may_be_auto = true,
       .section = kOptimizerSection,
       .commands = kTrainOnly,
       .help = "AdamW's guard against division by zero",
       .without_effect = only_with_adamw,
       .field = field(&RunConfig::optimizer, &OptimizerSettings::epsilon)},
      {.name = "sgd_momentum",
       .aliases = {"momentum"},
       .deepspeed = {"optimizer.params.momentum"},
       .type = ValueType::kNumber,
       .range = {.min = 0, .max = 1, .max_excluded = true},
       .default_value = 0.0,
       .section = kOptimizerSection,
       .commands = kTrainOnly,
       .help = "SGD's momentum; --optim_args momentum=0.9 says the same",
       .without_effect = only_with_sgd,
       .field = field(&RunConfig::optimizer, &OptimizerSettings::momentum)},
      {.name = "max_grad_norm",
       .deepspeed = {"gradient_clipping"},
       .accelerate = {"deepspeed_config.gradient_clipping"},
       .type = ValueType::kNumber,
       .range = kNotNegative,
       .default_value = 1.0,
       .may_be_auto = true,
       .section = kOptimizerSection,
       .commands = kTrainOnly,
       .help = "the global gradient norm is clipped to this; 0: no clipping",
       .field = field(&RunConfig::optimizer, &OptimizerSettings::max_grad_norm)},
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
  Declarations keys = batch_keys();
  for (Declarations more : {optimizer_keys(), schedule_keys(), evaluation_keys()}) {
    keys.insert(keys.end(), more.begin(), more.end());
  }
  // DeepSpeed writes both in one list.
  keys.push_back({.name = "optimizer.params.betas",
                  .deepspeed = {"optimizer.params.betas"},
                  .type = ValueType::kNumbers,
                  .range = {.min = 0, .max = 1, .max_excluded = true},
                  .may_be_auto = true,
                  .section = kOptimizerSection,
                  .commands = kTrainOnly,
                  .help = "adam_beta1 and adam_beta2, as DeepSpeed writes them",
                  .parts = betas});
  // Transformers' string of further optimizer settings; resolving hands its parts to the keys they
  // mean.
  keys.push_back({.name = "optim_args",
                  .section = kOptimizerSection,
                  .commands = kTrainOnly,
                  .help = "momentum=VALUE, for SGD",
                  .parts = optimizer_arguments});
  return keys;
}

}  // namespace zeroth::config
