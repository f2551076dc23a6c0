#include "worker/tables.h"

#include <cmath>
#include <csignal>

#include "base/text.h"
#include "config/schedule_rules.h"
#include "observe/progress.h"
#include <fmt/format.h>

namespace zeroth::worker {
namespace {

using observe::bytes_text;
using observe::grouped;

double percent(std::int64_t part, std::int64_t whole) {
  return whole == 0 ? 0.0 : 100.0 * static_cast<double>(part) / static_cast<double>(whole);
}

// " (3 empty, 2 bad)" or nothing.
std::string dropped(const data::RowCounts& counts) {
  std::string text;
  auto add = [&text](std::int64_t count, const char* why) {
    if (count > 0) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", grouped(count), why);
    }
  };
  add(counts.dropped_bad, "bad");
  add(counts.dropped_empty, "with an empty answer");
  add(counts.dropped_unlabelled, "left without a target by truncation");
  return text.empty() ? "0 dropped" : "dropped " + text;
}

// As a shell takes it.
std::string quoted(const std::string& word) {
  constexpr auto kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:=@%+,";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
    return word;
  }
  std::string text = "'";
  for (const char c : word) {
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return text + "'";
}

std::string precision_text(const config::RunConfig& config) {
  switch (config.model.precision) {
    case config::Precision::kBf16:
      return "bf16 with fp32 master";
    case config::Precision::kFp16:
      return config.model.loss_scale.fixed > 0
                 ? fmt::format("fp16 with fp32 master, loss scale {}",
                               config.model.loss_scale.fixed)
                 : fmt::format("fp16 with fp32 master, loss scale from 2^{} on",
                               config.model.loss_scale.initial_power);
    case config::Precision::kFp32:
      break;
  }
  return "fp32";
}

// The adapters that were merged into the base come before the one that was trained on it.
std::string adapters_for_next(const config::RunConfig& config) {
  std::vector<std::string> folders = config.model.adapter_folders();
  if (!config.finetune.create_new_adapter && !folders.empty()) {
    folders.pop_back();
  }
  folders.push_back(config.output.output_dir);
  return join(folders, ",");
}

const char* method_of(const config::RunConfig& config) {
  switch (config.finetune.type) {
    case config::FinetuningType::kLora:
      return config.finetune.use_dora ? "DoRA" : "LoRA";
    case config::FinetuningType::kFreeze:
      return "freeze-tuning";
    case config::FinetuningType::kFull:
      break;
  }
  return "full fine-tuning";
}

std::string next_command(const config::RunConfig& config) {
  const bool lora = config.finetune.type == config::FinetuningType::kLora;
  const std::string format =
      config.data.prompt_template.empty() ? "" : " --template " + config.data.prompt_template;
  const std::string model =
      lora ? fmt::format("--model_name_or_path {} --adapter_name_or_path {}",
                         quoted(config.model.model_name_or_path),
                         quoted(adapters_for_next(config)))
           : fmt::format("--model_name_or_path {}", quoted(config.output.output_dir));
  return fmt::format(
      "zeroth predict {}{} --dataset ROWS.json --output_dir predictions", model, format);
}

}  // namespace

std::string model_line(const models::Model& model, const config::RunConfig& config) {
  const std::int64_t all = model.num_parameters();
  const std::int64_t trainable = model.num_trainable();
  return fmt::format("trainable params: {} || all params: {} || trainable%: {:.4f} ({}, {})",
                     grouped(trainable),
                     grouped(all),
                     percent(trainable, all),
                     method_of(config),
                     precision_text(config));
}

std::string lora_line(const models::Model& model) {
  std::string modules;
  for (const auto& [name, count] : model.lora.counts) {
    modules += fmt::format("{}{}: {}", modules.empty() ? "" : ", ", name, count);
  }
  const std::size_t trained = model.lora.trained.size();
  return "LoRA on " + modules + " modules" +
         (trained == 0 ? "" : fmt::format(", and {} tensors of the model in full", trained));
}

std::string data_line(const std::string& what, const data::Dataset& dataset) {
  const auto batched = static_cast<std::int64_t>(dataset.examples.size());
  const std::int64_t rows = dataset.num_rows();
  return fmt::format("{}: {} rows{}, {} tokens, {} of them targets ({:.1f} %)",
                     what,
                     grouped(rows),
                     rows == batched ? "" : fmt::format(" joined into {}", grouped(batched)),
                     grouped(dataset.num_tokens),
                     grouped(dataset.num_targets),
                     percent(dataset.num_targets, dataset.num_tokens));
}

std::string counts_line(const data::RowCounts& counts, const std::string& what) {
  const std::string cut = counts.truncated == 0
                              ? "none truncated"
                              : fmt::format("{} truncated to cutoff_len ({} tokens cut)",
                                            grouped(counts.truncated),
                                            grouped(counts.tokens_cut));
  return fmt::format("{}: {} read, {} kept, {}, {}",
                     what,
                     grouped(counts.read),
                     grouped(counts.kept),
                     dropped(counts),
                     cut);
}

std::string plan_lines(const config::RunConfig& config, const train::TrainPlan& plan) {
  const double epochs =
      static_cast<double>(plan.total_updates) / static_cast<double>(plan.updates_per_epoch);
  const std::int64_t remainder = plan.rows % plan.global_rows;
  const bool few = plan.rows < plan.global_rows;
  const std::string partial =
      few ? fmt::format(" of the {} rows there are, fewer than a global batch", plan.rows)
      : remainder > 0
          ? fmt::format(", the last of an epoch with {} rows, weighted by its tokens", remainder)
          : "";
  const std::string length = config.schedule.max_steps > 0
                                 ? fmt::format(", by max_steps; num_train_epochs {} would be {}",
                                               config.schedule.num_train_epochs,
                                               plan.updates_by_epochs)
                                 : "";
  return fmt::format("updates: {} per epoch{}; {} in all ({:.2f} epochs{})\n{}",
                     plan.updates_per_epoch,
                     partial,
                     plan.total_updates,
                     epochs,
                     length,
                     config::rates_line(plan.schedule, plan.total_updates));
}

namespace {

std::string counts_text(const train::Progress& progress) {
  return fmt::format("{} updates, {} attempts skipped, {} rows, {} tokens ({} targets) in {}",
                     progress.engine.updates,
                     progress.skipped,
                     grouped(progress.rows),
                     grouped(progress.tokens),
                     grouped(progress.target_tokens),
                     observe::clock_text(progress.seconds));
}

std::string losses_text(const train::TrainSummary& summary) {
  const train::Progress& progress = summary.progress;
  std::string text = fmt::format("train loss {:.4f} over all updates, {:.4f} in the last",
                                 summary.train_loss,
                                 progress.last_loss);
  if (progress.eval_loss) {
    text += fmt::format("; validation loss {:.4f}, perplexity {:.3f}",
                        *progress.eval_loss,
                        std::exp(*progress.eval_loss));
  }
  if (summary.best_loaded) {
    text +=
        fmt::format("\nthe result has the weights of the best evaluation: update {}, loss {:.4f}",
                    summary.best_loaded->update,
                    summary.best_loaded->loss);
  }
  return text;
}

}  // namespace

std::string finish_table(const config::RunConfig& config,
                         const train::TrainSummary& summary,
                         const std::vector<std::filesystem::path>& files) {
  std::string text =
      fmt::format("done: {}\n{}\nfiles:", counts_text(summary.progress), losses_text(summary));
  for (const auto& file : files) {
    text += fmt::format("\n  {} ({})",
                        file.string(),
                        bytes_text(static_cast<std::int64_t>(std::filesystem::file_size(file))));
  }
  if (!summary.checkpoint.empty()) {
    text += fmt::format("\n  {} (a checkpoint{})",
                        summary.checkpoint.string(),
                        summary.num_checkpoints == 1
                            ? ""
                            : fmt::format("; {} were written", summary.num_checkpoints));
  }
  return text + "\nnext: " + next_command(config);
}

const char* signal_name(int signal) noexcept {
  return signal == SIGINT ? "SIGINT" : "SIGTERM";
}

std::string stop_table(const config::RunConfig& config, const train::TrainSummary& summary) {
  if (summary.checkpoint.empty()) {
    return fmt::format("stopped by {}: {}\nnothing was saved",
                       signal_name(summary.stopped_by),
                       counts_text(summary.progress));
  }
  const std::string done = fmt::format("stopped by {}: {}\n{} holds all of it",
                                       signal_name(summary.stopped_by),
                                       counts_text(summary.progress),
                                       summary.checkpoint.string());
  return config.saving.only_model
             ? done +
                   " but the optimizer's state (save_only_model): a new run can start from its "
                   "weights"
             : done + "\ngo on with the same command and --resume_from_checkpoint latest";
}

}  // namespace zeroth::worker
