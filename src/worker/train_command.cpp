#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/machine_memory.h"
#include "base/output_folder.h"
#include "config/report.h"
#include "memory/process_memory.h"
#include "plan/report.h"
#include "train/engine_options.h"
#include "train/save_result.h"
#include "train/trainer.h"
#include "worker/commands.h"
#include "worker/inputs.h"
#include "worker/memory_report.h"
#include "worker/ranks.h"
#include "worker/tables.h"
#include <fmt/format.h>

namespace zeroth::worker {
namespace {

namespace fs = std::filesystem;

inputs::TrainingData load_data(const config::RunConfig& config, const Inputs& inputs) {
  inputs::TrainingData data = inputs::load_training_data(config, inputs);
  report_rows(config, inputs, data.train);
  if (data.validation && config.data.val_size == 0) {
    report_rows(config, inputs, *data.validation);
  }
  log::info(data_line("training", data.train));
  if (data.validation) {
    log::info(data_line("validation", *data.validation));
  }
  return data;
}

// Of a full model. DeepSpeed leaves a stage 3 run without gather_16bit to a converter, which makes
// fp32 weights of it.
at::ScalarType result_dtype(const config::RunConfig& config) {
  const bool wide = config.zero.stage == 3 && !config.zero.gather_16bit_on_save.value_or(true);
  return wide ? at::kFloat : train::compute_dtype(config);
}

// With rows as long as the longest that there is, which is known by now.
plan::PlanInput plan_input(const config::RunConfig& config,
                           const Inputs& inputs,
                           const inputs::TrainingData& data) {
  plan::PlanInput input = plan::input_of(config, inputs.model_config);
  input.row_tokens = 1;
  const auto take_rows = [&input](const data::Dataset& dataset) {
    for (const data::Example& example : dataset.examples) {
      const auto tokens = static_cast<std::int64_t>(example.input_ids.size());
      input.row_tokens = std::max(input.row_tokens, tokens);
      input.row_targets = std::max(input.row_targets, example.num_targets());
    }
  };
  take_rows(data.train);
  if (data.validation) {
    take_rows(*data.validation);
  }
  return input;
}

// What stays from update to update is known exactly, and what is free now: better a word before the
// start than a signal in the middle (case M03).
void require_memory(const plan::PlanInput& input) {
  const plan::Needs needs = plan::needs_of(input, plan::size_of(input));
  const std::int64_t ranks = input.ranks_on_host();
  const std::int64_t needed = (needs.device.states.total() * ranks + needs.host * ranks).count();
  const std::int64_t available = available_memory();
  if (needed <= available) {
    return;
  }
  throw Error(ErrorKind::kMemory,
              fmt::format("weights, gradients and optimizer state need {} of memory on this host "
                          "({} rank{}), {} are available\n  {} zeroth plan says what every choice "
                          "needs.",
                          observe::bytes_text(needed),
                          ranks,
                          ranks == 1 ? "" : "s",
                          observe::bytes_text(available),
                          input.lora ? "bf16 halves the weights; offload_param nvme at stage 3 "
                                       "lets trained ones rest in files."
                                     : "LoRA needs a small part of it; offload_optimizer and "
                                       "offload_param nvme at stage 3 let it rest in files."));
}

// Better now than after the last update: a result that has no room is refused before the run.
void require_room(const config::RunConfig& config, const LoadedModel& loaded) {
  const std::int64_t width =
      loaded.adapter || result_dtype(config) == at::kFloat ? sizeof(float) : sizeof(float) / 2;
  const std::int64_t numbers =
      loaded.adapter ? loaded.model.num_trainable() : loaded.model.num_parameters();
  const std::int64_t needed = numbers * width;
  std::int64_t free = static_cast<std::int64_t>(fs::space(config.output.output_dir).available);
  for (const fs::path& old : results_in(config.output.output_dir)) {
    free += fs::is_regular_file(old) ? static_cast<std::int64_t>(fs::file_size(old)) : 0;
  }
  if (needed > free) {
    throw Error(ErrorKind::kDisk,
                fmt::format("the result takes {} and the disk of --output_dir {} has {} left\n  "
                            "Free some space or choose another folder.",
                            observe::bytes_text(needed),
                            config.output.output_dir,
                            observe::bytes_text(free)));
  }
}

std::vector<fs::path> save(const config::RunConfig& config,
                           const LoadedModel& loaded,
                           const engine::Engine& engine) {
  const fs::path folder = config.output.output_dir;
  std::vector<fs::path> files =
      loaded.adapter ? train::save_adapter(folder, loaded.model, engine, *loaded.adapter)
                     : train::save_model(folder, loaded.model, engine, result_dtype(config));
  if (engine.comm().rank() != 0) {
    return {};
  }
  const auto companions = train::copy_companions(config.model.model_name_or_path, folder);
  files.insert(files.end(), companions.begin(), companions.end());
  files.push_back(folder / "metrics.jsonl");
  return files;
}

void print_summary(const config::RunConfig& config,
                   const train::TrainSummary& summary,
                   const MemoryReport& memory) {
  if (!config.json_output) {
    return;
  }
  Json json{{"updates", summary.updates},
            {"skipped", summary.skipped},
            {"rows", summary.rows},
            {"tokens", summary.tokens},
            {"target_tokens", summary.target_tokens},
            {"train_loss", summary.train_loss},
            {"last_loss", summary.last_loss},
            {"eval_loss", nullptr},
            {"seconds", summary.seconds},
            {"memory", json_of(memory)},
            {"offload_read_bytes", summary.offloaded.read},
            {"offload_write_bytes", summary.offloaded.written},
            {"output_dir", config.output.output_dir}};
  if (summary.eval_loss) {
    json["eval_loss"] = *summary.eval_loss;
  }
  std::puts(json.dump().c_str());
}

}  // namespace

void run_train(const config::RunConfig& config, const CommPtr& comm) {
  log::info(config::start_table(config));
  comm->note("reading the data");
  const Inputs inputs = inputs::open_data_inputs(config);
  const inputs::TrainingData data = load_data(config, inputs);
  require_same_rows(*comm, "training", data.train);
  if (data.validation) {
    require_same_rows(*comm, "validation", *data.validation);
  }
  const plan::PlanInput input = plan_input(config, inputs, data);
  require_memory(input);
  const std::int64_t bytes_before = memory::proportional_set_bytes();
  comm->note("loading the model");
  LoadedModel loaded = load_model(config, inputs, /*trains=*/true);
  log::info(model_line(loaded.model, config));
  if (loaded.adapter) {
    log::info(lora_line(loaded.model));
  }
  log::info(plan::memory_line(input));
  const auto rows = static_cast<std::int64_t>(data.train.examples.size());
  const train::TrainPlan plan = train::make_plan(config, rows);
  log::info(plan_lines(config, plan));

  engine::Engine engine(loaded.model.units,
                        train::make_optimizer(config.optimizer),
                        train::engine_options(config, plan.schedule),
                        comm,
                        loaded.tally);
  comm->barrier("state of all ranks");  // a rank without room has said so by now
  // Everything has been read and is good, and there is room: only now may results of an earlier run
  // go.
  if (comm->rank() == 0) {
    require_room(config, loaded);
    remove_results(config.output.output_dir);
    write_file_atomically(fs::path(config.output.output_dir) / "effective_config.json",
                          config::effective_config(config).dump(2) + "\n");
  }
  for (const std::string& text : engine.resting_texts()) {
    log::info(text);
  }
  const data::Dataset* validation = data.validation ? &*data.validation : nullptr;
  const train::TrainSummary summary =
      train::Trainer(config, plan, engine, data.train, validation, inputs.pad_id).run();
  comm->note(fmt::format("save of update {}", summary.updates));
  const std::vector<fs::path> files = save(config, loaded, engine);
  // While the others are there: what they share with this rank is counted in parts.
  const ProcessBytes process{.before = bytes_before, .at_end = memory::proportional_set_bytes()};
  comm->barrier("end of the save");  // the result is there, and every rank knows
  if (comm->rank() == 0) {
    const MemoryReport memory =
        memory_report(config, inputs.model_config, engine.tally(), summary.largest, process);
    log::info(text_of(memory));
    log::info(finish_table(config, summary, files));
    print_summary(config, summary, memory);
  }
}

}  // namespace zeroth::worker
