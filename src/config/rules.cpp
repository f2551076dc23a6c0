#include "config/rules.h"

#include <cmath>

#include "config/engine_rules.h"
#include "config/placement.h"
#include "config/saving_rules.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

bool reads_rows(const Values& values) {
  return (bit(values.command()) & kWithRows) != 0;
}

void check_required(const Values& values, Problems& problems) {
  for (const Declaration& key : schema()) {
    if ((key.required & bit(values.command())) != 0 && !values.given(key.name)) {
      problems.add(
          ProblemKind::kMissing, key.name, fmt::format("--{} is required: {}", key.name, key.help));
    }
  }
}

void check_rows(const Values& values, Problems& problems) {
  const bool has_eval_rows = values.given("eval_dataset");
  const double val_size = values["val_size"].get<double>();
  if (values.command() == Command::kTrain && has_eval_rows && val_size > 0) {
    problems.add(
        ProblemKind::kConflict,
        "eval_dataset",
        fmt::format("--val_size {:g} and --eval_dataset {} both say what to evaluate on: give one",
                    val_size,
                    shown(values["eval_dataset"])));
  }
  if (values.command() == Command::kTrain && values["train_on_prompt"] == true &&
      values["mask_history"] == true) {
    problems.add(
        ProblemKind::kConflict,
        "mask_history",
        "--mask_history trains the last answer alone, --train_on_prompt all tokens: give one");
  }
  if (val_size > 1 && std::floor(val_size) != val_size) {
    problems.add(
        ProblemKind::kConflict,
        "eval_dataset",
        fmt::format("--val_size {:g} is neither a number of rows nor a share below 1", val_size));
  }
  if (values.command() != Command::kTrain && !has_eval_rows && !values.given("dataset")) {
    problems.add(ProblemKind::kConflict,
                 "eval_dataset",
                 "--eval_dataset or --dataset is required: the rows to read");
  }
  if (values.command() == Command::kTrain && !values.is("eval_strategy", "no") && !has_eval_rows &&
      val_size == 0) {
    problems.add(
        ProblemKind::kConflict,
        "eval_dataset",
        fmt::format(
            "--eval_strategy {} has no rows to evaluate on: give --eval_dataset or --val_size",
            shown(values["eval_strategy"])));
  }
}

void check_adapter(const Values& values, Problems& problems) {
  if (values.given("adapter_name_or_path") && values.command() == Command::kTrain &&
      !values.is("finetuning_type", "lora")) {
    problems.add(ProblemKind::kConflict,
                 "adapter_name_or_path",
                 fmt::format("--adapter_name_or_path needs --finetuning_type lora: {} training has "
                             "no adapter",
                             shown(values["finetuning_type"])));
  }
}

bool is_layer_number(const Json& value) {
  const std::string text = value.is_string() ? value.get<std::string>() : "";
  return !text.empty() && text.size() < 10 &&
         text.find_first_not_of("0123456789") == std::string::npos;
}

void check_layers(const Values& values, Problems& problems) {
  for (const Json& layer : values["layers_to_transform"]) {
    if (!is_layer_number(layer)) {
      problems.add(
          ProblemKind::kType,
          "layers_to_transform",
          fmt::format("{}: {} is no number of a layer\n    Give numbers from 0 on, such as "
                      "0,2.",
                      spelled_with_source(values, "layers_to_transform"),
                      shown(layer)));
    }
  }
}

// rank_pattern and alpha_pattern: a number above 0 for each module.
void check_pattern(const Values& values, const std::string& key, bool whole, Problems& problems) {
  for (const auto& [module, value] : values[key].items()) {
    const bool fits = (whole ? value.is_number_integer() : value.is_number()) && value > 0;
    if (!fits) {
      problems.add(ProblemKind::kType,
                   key,
                   fmt::format("{}: \"{}\" has {}, which is no {} above 0",
                               spelled_with_source(values, key),
                               module,
                               shown(value),
                               whole ? "whole number" : "number"));
    }
  }
}

void check_finetuning(const Values& values, Problems& problems) {
  check_adapter(values, problems);
  check_layers(values, problems);
  check_pattern(values, "rank_pattern", true, problems);
  check_pattern(values, "alpha_pattern", false, problems);
}

// A model's shape is all that is read.
void check_bench(const Values& values, Problems& problems) {
  if (values.given("model_config") == values.given("model_name_or_path")) {
    problems.add(ProblemKind::kMissing,
                 "model_config",
                 "one of --model_config (a config.json) and --model_name_or_path (a model folder) "
                 "is needed: the shape of the model");
  }
}

// A default length may never hide the one that the user gave, so there is no default to fight with:
// case G07.
void check_lengths(const Values& values, Problems& problems) {
  if (values.given("max_length") && values.given("max_new_tokens")) {
    problems.add(
        ProblemKind::kConflict,
        "max_new_tokens",
        fmt::format("--max_length {} and --max_new_tokens {} both bound the answer: give one",
                    shown(values["max_length"]),
                    shown(values["max_new_tokens"])));
  }
}

bool is_above(const Values& values, const std::string& key, std::int64_t bound) {
  return values[key].is_number_integer() && values[key].get<std::int64_t>() > bound;
}

// Which stages go with ranks that share a model: gradients cut at every backward (stage 2) cannot
// be added up over the micro-batches of a pipeline, and weights that are shards already (stage 3)
// cannot be split by matrix too.
void check_axes(const Values& values, Problems& problems) {
  const auto refuse = [&](const std::string& axis, const std::string& stages) {
    problems.add({.kind = ProblemKind::kConflict,
                  .key = "zero_stage",
                  .message = fmt::format("{} needs zero stage {} (got {}): {}",
                                         spelled_with_source(values, axis),
                                         stages,
                                         shown(values["zero_stage"]),
                                         spelled_with_source(values, "zero_stage")),
                  .sources = {values.source(axis).text, values.source("zero_stage").text}});
  };
  if (is_above(values, "pipeline.stages", 1) && is_above(values, "zero_stage", 1)) {
    refuse("pipeline.stages", "0 or 1");
  }
  if (is_above(values, "tensor_parallel.autotp_size", 1) && is_above(values, "zero_stage", 2)) {
    refuse("tensor_parallel.autotp_size", "0, 1 or 2");
  }
}

// A launcher decides how many ranks there are; --ranks may repeat it, not contradict it.
void check_ranks(const Values& values, const Placement& place, Problems& problems) {
  const auto ranks = values["ranks"].get<std::int64_t>();
  const bool from_file = !has_dashes(values.source("ranks"));
  if (place.launched() && ranks != place.world_size) {
    problems.add({.kind = ProblemKind::kPlacement,
                  .key = "ranks",
                  .message = fmt::format(
                      "{} {} ({}), but {}={} (environment): a launcher has started the ranks\n"
                      "    Under a launcher leave it out, or say the same number.",
                      from_file ? values.setting("ranks").spelled : "--ranks",
                      ranks,
                      values.source("ranks").text,
                      place.source,
                      place.world_size),
                  .sources = {values.source("ranks").text, place.source}});
  }
}

}  // namespace

std::string spelled_with_source(const Values& values, const std::string& key) {
  const Setting& setting = values.setting(key);
  return setting.spelled.empty()
             ? fmt::format("{} {} ({})", key, shown(setting.value), setting.source.text)
             : fmt::format(
                   "{} {} ({})", setting.spelled, shown(setting.written), setting.source.text);
}

const std::vector<std::string>& launch_variables() {
  static const std::vector<std::string> names{"WORLD_SIZE",
                                              "RANK",
                                              "LOCAL_WORLD_SIZE",
                                              "MASTER_ADDR",
                                              "MASTER_PORT",
                                              "ZEROTH_RUN_NAME",
                                              "OMPI_COMM_WORLD_SIZE",
                                              "OMPI_COMM_WORLD_RANK",
                                              "PMI_SIZE",
                                              "PMI_RANK",
                                              "SLURM_STEP_NUM_TASKS",
                                              "SLURM_PROCID"};
  return names;
}

void check_rules(const Values& values,
                 const Placement& place,
                 bool only_check,
                 Problems& problems) {
  if (!only_check) {
    check_required(values, problems);
  }
  if (reads_rows(values)) {
    check_rows(values, problems);
    check_lengths(values, problems);
    check_saving(values, problems);
  } else if (values.command() == Command::kBench) {
    check_bench(values, problems);
  } else {
    return;
  }
  check_finetuning(values, problems);
  check_axes(values, problems);
  check_engine(values, problems);
  if (!only_check || !values.given("world_size")) {
    check_ranks(values, place, problems);
  }
}

}  // namespace zeroth::config
