#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/text.h"
#include "checkpoint/folder.h"
#include "checkpoint/manifest.h"
#include "cli/checks.h"
#include "config/saving_rules.h"
#include <fmt/format.h>

namespace zeroth::cli {
namespace {

namespace fs = std::filesystem;
using config::ResumeDifference;

std::vector<std::string> texts_of(const std::vector<ResumeDifference>& differences) {
  std::vector<std::string> texts;
  for (const ResumeDifference& difference : differences) {
    texts.push_back(config::text_of(difference));
  }
  return texts;
}

// Settings that decide which weights are trained: state of others is of no use, whatever is
// allowed.
constexpr std::array kTrainedWeights{"finetuning_type",
                                     "add_tokens",
                                     "add_special_tokens",
                                     "resize_vocab",
                                     "lora_rank",
                                     "lora_target",
                                     "exclude_modules",
                                     "layers_to_transform",
                                     "layers_pattern",
                                     "rank_pattern",
                                     "use_dora",
                                     "additional_target",
                                     "bias",
                                     "freeze_trainable_layers",
                                     "freeze_trainable_modules",
                                     "freeze_extra_modules"};

void refuse_other_weights(const std::string& folder,
                          bool is_adapter,
                          const std::vector<ResumeDifference>& differences) {
  std::string lines;
  for (const ResumeDifference& difference : differences) {
    if (std::find(kTrainedWeights.begin(), kTrainedWeights.end(), difference.key) !=
        kTrainedWeights.end()) {
      lines += "\n  " + config::text_of(difference);
    }
  }
  if (!lines.empty()) {
    throw Error(ErrorKind::kCheckpoint,
                fmt::format("{} was written by a run that trains other weights:{}\n  Give the "
                            "checkpoint's values, or start a new run from its weights: {}.",
                            folder,
                            lines,
                            is_adapter ? "--adapter_name_or_path" : "--model_name_or_path"));
  }
}

// What would make another run of it.
void refuse_other_run(const std::string& folder, const std::vector<ResumeDifference>& differences) {
  std::string lines;
  std::string options;
  for (const ResumeDifference& difference : differences) {
    if (difference.needs_allow) {
      lines += "\n  " + config::text_of(difference);
      options += " --allow " + difference.key;
    }
  }
  if (!lines.empty()) {
    throw Error(ErrorKind::kCheckpoint,
                fmt::format("{} was written by a run with other settings, which decide what a run "
                            "means:{}\n  Give the checkpoint's values, or, if you mean it,{}.",
                            folder,
                            lines,
                            options));
  }
}

// No --allow makes another optimizer's numbers of these.
void refuse_other_moments(const std::string& folder,
                          const checkpoint::Manifest& manifest,
                          const config::RunConfig& config) {
  if (manifest.only_weights() || !manifest.settings.contains("optim")) {
    return;  // the engine looks once more
  }
  const auto saved = manifest.settings["optim"].get<std::string>();
  const std::string present = config.value_of("optim").get<std::string>();
  const std::string kept = config::state_of_optimizer(saved, manifest.num_moments > 0);
  const std::string needed = config::state_of_optimizer(present, config.optimizer.momentum != 0);
  if (kept != needed) {
    throw Error(
        ErrorKind::kCheckpoint,
        fmt::format("{} holds {} ({}), and this run's optimizer keeps {} ({})\n"
                    "  Give the optimizer of that run (--optim {}), or start a new run from "
                    "its weights.",
                    folder,
                    kept,
                    saved,
                    needed,
                    present,
                    saved));
  }
}

void refuse_if_strict(const config::RunConfig& config,
                      const std::vector<ResumeDifference>& differences) {
  const bool strict = config.value_of("strict") == true;
  if (strict && !differences.empty()) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("--strict: settings are not those of {}:\n  {}\n  Give the checkpoint's "
                    "values, or leave --strict out.",
                    config.resume.folder,
                    join(texts_of(differences), "\n  ")));
  }
}

// "checkpoint-4" and "checkpoint-4/" lie in ".".
fs::path with_parent(fs::path folder) {
  if (!folder.has_filename()) {
    folder = folder.parent_path();
  }
  return folder.has_parent_path() ? folder : "." / folder;
}

}  // namespace

void choose_checkpoint(config::RunConfig& config) {
  if (config.resume.from.empty()) {
    return;
  }
  const checkpoint::Choice choice =
      checkpoint::choose(config.resume.from, config.output.output_dir);
  for (const std::string& remark : choice.remarks) {
    config.notices.push_back(remark);
  }
  if (choice.folder.empty()) {
    return;
  }
  config.resume.folder = with_parent(choice.folder).string();
  const checkpoint::Manifest manifest = checkpoint::read_manifest(choice.folder);
  refuse_other_moments(config.resume.folder, manifest, config);
  const auto differences = config::differences_on_resume(manifest.settings, config);
  refuse_other_weights(config.resume.folder, manifest.adapter, differences);
  refuse_other_run(config.resume.folder, differences);
  refuse_if_strict(config, differences);
  for (const std::string& text : texts_of(differences)) {
    config.notices.push_back(text);
  }
}

void tell_how_to_go_on(const config::RunConfig& config) {
  const checkpoint::Choice newest = checkpoint::choose("auto", config.output.output_dir);
  if (!newest.folder.empty()) {
    log::info(
        fmt::format("  {} is complete: the same command with --resume_from_checkpoint latest "
                    "goes on from it",
                    newest.folder.string()));
  }
}

}  // namespace zeroth::cli
