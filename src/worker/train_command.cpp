#include <algorithm>
#include <cstdio>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/log.h"
#include "base/machine_memory.h"
#include "base/output_folder.h"
#include "checkpoint/folder.h"
#include "config/report.h"
#include "kernels/in_use.h"
#include "memory/process_memory.h"
#include "plan/report.h"
#include "train/checkpoint_save.h"
#include "train/engine_options.h"
#include "train/result.h"
#include "train/trainer.h"
#include "train/trainer_state.h"
#include "worker/commands.h"
#include "worker/inputs.h"
#include "worker/memory_report.h"
#include "worker/packing.h"
#include "worker/ranks.h"
#include "worker/resume.h"
#include "worker/signals.h"
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
  throw Error(
      ErrorKind::kMemory,
      fmt::format("weights, gradients and optimizer state need {} of memory on this host "
                  "({} rank{}), {} are available\n  {} zeroth plan says what every choice "
                  "needs.",
                  observe::bytes_text(needed),
                  ranks,
                  ranks == 1 ? "" : "s",
                  observe::bytes_text(available),
                  !input.trains_all() ? "bf16 halves the weights; offload_param nvme at stage 3 "
                                        "lets trained ones rest in files."
                                      : "LoRA needs a small part of it; offload_optimizer and "
                                        "offload_param nvme at stage 3 let it rest in files."));
}

// Better now than after hours: a result and a checkpoint that have no room are refused before the
// run. `freed`: results that go first.
void require_room(const train::Trained& trained, const std::vector<fs::path>& freed) {
  const config::RunConfig& config = trained.config;
  const bool saves = config.saving.cadence != config::SaveCadence::kNo;
  const std::int64_t needed =
      train::result_bytes(trained) + (saves ? train::checkpoint_bytes(trained) : 0);
  std::int64_t free = static_cast<std::int64_t>(fs::space(config.output.output_dir).available);
  for (const fs::path& old : freed) {
    free += fs::is_regular_file(old) ? static_cast<std::int64_t>(fs::file_size(old)) : 0;
  }
  if (needed > free) {
    throw Error(ErrorKind::kDisk,
                fmt::format("the result{} {} and the disk of --output_dir {} has {} left\n  Free "
                            "some space or choose another folder{}.",
                            saves ? " and one checkpoint take" : " takes",
                            observe::bytes_text(needed),
                            config.output.output_dir,
                            observe::bytes_text(free),
                            saves ? ", or write no checkpoints: --save_strategy no" : ""));
  }
}

// Every rank writes its part of a checkpoint into output_dir, which hosts need not share for
// anything else. Where they do not, a run that did not ask for checkpoints goes on without.
// Collective.
bool can_save(const config::RunConfig& config, comm::Communicator& comm) {
  const bool sees = fs::exists(fs::path(config.output.output_dir) / kOutputLock);
  const std::vector<double> all =
      comm.gather_values("sight of output_dir", std::vector<double>{sees ? 1.0 : 0.0});
  const auto blind = std::find(all.begin(), all.end(), 0.0);
  if (blind == all.end()) {
    return true;
  }
  if (config.saving.cadence == config::SaveCadence::kNo) {
    return false;
  }
  const std::string what = fmt::format(
      "rank {} does not see rank 0's output_dir {}", blind - all.begin(), config.output.output_dir);
  if (config.is_given("save_strategy") || config.is_given("save_steps") ||
      config.saving.load_best_at_end) {
    throw Error(ErrorKind::kDisk,
                what +
                    ", and all ranks write their part of a checkpoint\n  Put output_dir where "
                    "every host sees it, or write none: --save_strategy no.");
  }
  log::warn(what + ": there are no checkpoints, and the result is written at the end");
  return false;
}

// Everything has been read and is good, and every rank has its room: only now may results of an
// earlier run go. A run that goes on in the folder of its checkpoint keeps them until its own
// stand.
void take_over_folder(const train::Trained& trained, const Resumed& resumed) {
  const fs::path output = trained.config.output.output_dir;
  const bool goes_on = resumed && checkpoint::lies_in(resumed->folder, output);
  require_room(trained, goes_on ? std::vector<fs::path>{} : results_in(output));
  checkpoint::remove_leftovers(output);
  if (!goes_on) {
    remove_results(output);
  }
  write_file_atomically(output / "effective_config.json",
                        config::effective_config(trained.config).dump(2) + "\n");
}

std::vector<fs::path> save_last(const train::Trained& trained, const train::TrainSummary& summary) {
  trained.engine.comm().note(fmt::format("save of update {}", summary.progress.engine.updates));
  const fs::path output = trained.config.output.output_dir;
  std::vector<fs::path> files = train::save_result(trained, output);
  if (trained.engine.comm().rank() == 0) {
    train::write_trainer_state(output, trained.config, summary.progress);
    files.push_back(output / "metrics.jsonl");
    files.push_back(output / train::kTrainerStateFile);
  }
  return files;
}

void print_summary(const config::RunConfig& config,
                   const train::TrainSummary& summary,
                   const MemoryReport& memory) {
  if (!config.json_output) {
    return;
  }
  const train::Progress& progress = summary.progress;
  Json json{
      {"updates", progress.engine.updates},
      {"skipped", progress.skipped},
      {"rows", progress.rows},
      {"tokens", progress.tokens},
      {"target_tokens", progress.target_tokens},
      {"train_loss", summary.train_loss},
      {"last_loss", progress.last_loss},
      {"eval_loss", progress.eval_loss ? Json(*progress.eval_loss) : Json()},
      {"seconds", progress.seconds},
      {"memory", json_of(memory)},
      {"offload_read_bytes", progress.offloaded.read},
      {"offload_write_bytes", progress.offloaded.written},
      {"output_dir", config.output.output_dir},
      {"checkpoint", summary.checkpoint.empty() ? Json() : Json(summary.checkpoint.string())},
      {"best_update", summary.best_loaded ? Json(summary.best_loaded->update) : Json()},
      {"stopped_by", summary.stopped_by == 0 ? Json() : Json(signal_name(summary.stopped_by))}};
  std::puts(json.dump().c_str());
}

int report_end(const train::Trained& trained,
               const train::TrainSummary& summary,
               const std::vector<fs::path>& files,
               const MemoryReport& memory) {
  log::info(text_of(memory));
  log::info(summary.stopped_by == 0 ? finish_table(trained.config, summary, files)
                                    : stop_table(trained.config, summary));
  print_summary(trained.config, summary, memory);
  return summary.stopped_by == 0 ? 0 : 128 + summary.stopped_by;
}

train::TrainSummary train_rows(const train::Trained& trained,
                               const train::TrainInputs& inputs,
                               const Resumed& resumed) {
  KeptRequests requests;
  return train::Trainer(trained,
                        inputs,
                        resumed ? resumed->progress : train::Progress{},
                        [&requests] { return requests.take(); })
      .run();
}

}  // namespace

int run_train(const config::RunConfig& config, const CommPtr& comm) {
  log::info(config::start_table(config));
  comm->note("reading the data");
  const Inputs inputs = open_inputs(config);
  const inputs::TrainingData data = load_data(config, inputs);
  require_same_rows(*comm, "training", data.train);
  if (data.validation) {
    require_same_rows(*comm, "validation", *data.validation);
  }
  const train::Fingerprints fingerprints = fingerprints_of(config, inputs, data.train);
  const Resumed resumed = checkpoint_to_resume(config, *comm, fingerprints);
  const plan::PlanInput input =
      settled(plan_input(config, inputs, data), train::compute_dtype(config), *comm);
  require_memory(input);
  const std::int64_t bytes_before = memory::proportional_set_bytes();
  comm->note("loading the model");
  LoadedModel loaded = load_model(config, inputs, /*trains=*/true, *comm);
  log::info(model_line(loaded.model, config));
  log::info("kernels: " + kernels::kernels_in_use(train::compute_dtype(config)));
  if (loaded.adapter) {
    log::info(lora_line(loaded.model));
  }
  log::info(plan::memory_line(input));
  const auto rows = static_cast<std::int64_t>(data.train.examples.size());
  const train::TrainPlan plan = train::make_plan(config, rows, start_of(resumed));
  log::info(plan_lines(config, plan));

  engine::EngineOptions options = train::engine_options(config, plan.schedule);
  options.pack_weights = packing_of(input.packed);
  engine::Engine engine(
      loaded.model.units, train::make_optimizer(config.optimizer), options, comm, loaded.tally);
  if (resumed) {
    load_resumed(*resumed, plan, engine);
  }
  comm->barrier("state of all ranks");  // a rank without room has said so by now
  // Whoever writes has them.
  const std::vector<train::Companion> companions =
      comm->rank() == 0 ? companions_of(config, inputs) : std::vector<train::Companion>{};
  const train::Trained trained{
      config, loaded.model, loaded.adapter, engine, companions, can_save(config, *comm)};
  if (comm->rank() == 0) {
    take_over_folder(trained, resumed);
  }
  for (const std::string& text : engine.resting_texts()) {
    log::info(text);
  }
  const train::TrainSummary summary = train_rows(trained,
                                                 {plan,
                                                  data.train,
                                                  data.validation ? &*data.validation : nullptr,
                                                  inputs.pad_id,
                                                  fingerprints},
                                                 resumed);
  const std::vector<fs::path> files =
      summary.stopped_by == 0 ? save_last(trained, summary) : std::vector<fs::path>{};
  // While the others are there: what they share with this rank is counted in parts.
  const ProcessBytes process{.before = bytes_before, .at_end = memory::proportional_set_bytes()};
  comm->barrier("end of the save");  // the result is there, and every rank knows
  if (comm->rank() != 0) {
    return summary.stopped_by == 0 ? 0 : 128 + summary.stopped_by;
  }
  return report_end(
      trained, summary, files, memory_report(input, engine.tally(), summary.largest, process));
}

}  // namespace zeroth::worker
