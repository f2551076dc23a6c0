#include <algorithm>
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
#include "plan/input.h"
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
  const std::int64_t present = plan::num_moments(config.optimizer);
  if (!manifest.only_weights() && manifest.num_moments != present) {
    throw Error(ErrorKind::kCheckpoint,
                fmt::format("{} has {} moments of each parameter, and this run's optimizer has {}\n"
                            "  Give the optimizer of that run (--optim{}), or start a new run from "
                            "its weights.",
                            folder,
                            manifest.num_moments,
                            present,
                            manifest.settings.contains("optim")
                                ? " " + manifest.settings["optim"].get<std::string>()
                                : ""));
  }
}

void refuse_if_strict(const config::RunConfig& config,
                      const std::vector<ResumeDifference>& differences) {
  const bool strict = std::any_of(
      config.settings.begin(), config.settings.end(), [](const config::SettingInForce& setting) {
        return setting.key == "strict" && setting.value == true;
      });
  if (strict && !differences.empty()) {
    throw Error(
        ErrorKind::kConfig,
        fmt::format("--strict: settings are not those of {}:\n  {}\n  Give the checkpoint's "
                    "values, or leave --strict out.",
                    config.resume.folder,
                    join(texts_of(differences), "\n  ")));
  }
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
  config.resume.folder = choice.folder.string();
  const checkpoint::Manifest manifest = checkpoint::read_manifest(choice.folder);
  refuse_other_moments(config.resume.folder, manifest, config);
  const auto differences = config::differences_on_resume(manifest.settings, config);
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
