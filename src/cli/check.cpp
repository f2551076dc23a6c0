#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/machine_memory.h"
#include "base/printing.h"
#include "cli/commands.h"
#include "cli/model_names.h"
#include "config/compare.h"
#include "config/report.h"
#include "config/resolve.h"
#include "formats/model_config.h"
#include "inputs/data_inputs.h"
#include "plan/packing.h"
#include "plan/report.h"
#include "plan/trained_parts.h"
#include "shapes/families.h"
#include "shapes/lora.h"
#include <fmt/format.h>

namespace zeroth::cli {
namespace {

constexpr int kRefused = 2;

std::string problem_list(const config::Problems& problems) {
  const std::size_t count = problems.all().size();
  std::string text = fmt::format("{} {} wrong", count, count == 1 ? "thing is" : "things are");
  for (const config::Problem& problem : problems.all()) {
    text += "\n  " + problem.message;
  }
  return text;
}

void print(const std::string& text) {
  std::fputs(visible(text + "\n").c_str(), stdout);
}

std::string first_line(const Error& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

// Rows are counted where the data is there. What is wrong with it is for `zeroth train` to say in
// full; here it is one line.
std::optional<std::int64_t> rows_to_train(config::Resolution& resolution) {
  constexpr std::uintmax_t kMostBytes = 64U << 20U;  // beyond it, counting takes seconds
  if (!resolution.problems.empty()) {
    return std::nullopt;
  }
  try {
    for (const data::Source& source : inputs::sources_of(resolution.config.data.dataset)) {
      std::error_code error;
      if (!std::filesystem::exists(source.file, error)) {
        resolution.config.notices.push_back(source.file.string() +
                                            " is not on this machine: its rows are not counted");
      }
    }
    return inputs::count_training_rows(resolution.config, kMostBytes);
  } catch (const Error& error) {
    resolution.config.notices.push_back("the rows cannot be counted: " + first_line(error));
    return std::nullopt;
  }
}

// A check speaks of settings: a model that is not on this machine is worth a notice alone.
void look_for_models(config::Resolution& resolution) {
  try {
    find_models(resolution.config);
  } catch (const Error& error) {
    resolution.config.notices.push_back(first_line(error));
  }
}

// The model's shape, where its folder is there: it is what a memory plan needs.
std::optional<formats::ModelConfig> shape_of_model(const config::Resolution& resolution) {
  const std::string& folder = resolution.config.model.model_name_or_path;
  const std::filesystem::path file = std::filesystem::path(folder) / "config.json";
  std::error_code error;
  if (folder.empty() || !resolution.problems.empty() ||
      !std::filesystem::is_regular_file(file, error)) {
    return std::nullopt;
  }
  return inputs::model_config_of(resolution.config, file);
}

// A model that is there and that a run would refuse is wrong, like a setting.
std::optional<formats::ModelConfig> sound_shape_of_model(config::Resolution& resolution) {
  try {
    std::optional<formats::ModelConfig> model = shape_of_model(resolution);
    const config::RunConfig& config = resolution.config;
    const bool new_adapter = config.model.adapter_name_or_path.empty() &&
                             config.finetune.type == config::FinetuningType::kLora;
    if (model && new_adapter) {
      (void)shapes::lora_targets(shapes::model_shape(*model), plan::lora_settings(config));
    }
    return model;
  } catch (const Error& error) {
    resolution.problems.add(config::ProblemKind::kFile, "model_name_or_path", error.what());
    return std::nullopt;
  }
}

// One rank's memory, in one line and for programs; both empty where it is not known.
struct MemoryPlan {
  std::string line;
  Json json;
};

MemoryPlan memory_plan(config::Resolution& resolution) {
  try {
    if (const auto model = sound_shape_of_model(resolution)) {
      plan::PlanInput input = plan::input_of(resolution.config, *model);
      const plan::Bytes share(machine_memory() / input.ranks_on_host());
      input = plan::settle_packing(input, plan::packing_room(input, share));
      return {.line = plan::memory_line(input), .json = plan::memory_json(input)};
    }
  } catch (const Error& error) {
    const std::string what = error.what();
    resolution.config.notices.push_back("no memory plan: " + what.substr(0, what.find('\n')));
  }
  return {};
}

// What is wrong with the other set-up counts as well: nothing can be said of a file that does not
// hold.
std::vector<config::Difference> differences_of(config::Resolution& resolution,
                                               const config::Environment& environment) {
  try {
    return config::compare(resolution, environment);
  } catch (const Error& error) {
    resolution.problems.add(config::ProblemKind::kFile, "diff", error.what());
    return {};
  }
}

void print_text(const config::Resolution& resolution,
                const config::Outlook& outlook,
                const MemoryPlan& memory,
                const std::vector<config::Difference>& differences) {
  print(config::start_table(resolution.config));
  if (const std::string lines = config::outlook_lines(resolution.config, outlook);
      !lines.empty() && resolution.problems.empty()) {
    print(lines);
  }
  if (!memory.line.empty()) {
    print(memory.line);
  }
  if (!differences.empty()) {
    print(config::difference_lines(differences));
  }
  if (!resolution.problems.empty()) {
    print(problem_list(resolution.problems));
  } else {
    print("ok");
  }
}

}  // namespace

int run_check(Arguments arguments) {
  const config::Environment environment = config::process_environment();
  config::Resolution resolution =
      config::resolve_all(config::Command::kCheck, arguments, environment);
  look_for_models(resolution);
  const config::Outlook outlook = config::outlook_of(resolution.config, rows_to_train(resolution));
  const MemoryPlan memory = memory_plan(resolution);
  const std::vector<config::Difference> differences = differences_of(resolution, environment);
  if (resolution.config.json_output) {
    Json report = config::check_report(resolution, outlook);
    report["memory_plan"] = memory.json;
    if (resolution.other_setup) {
      report["diff"] = config::to_json(differences);
    }
    print(json_text(report));
  } else {
    print_text(resolution, outlook, memory, differences);
  }
  return resolution.problems.empty() ? 0 : kRefused;
}

}  // namespace zeroth::cli
