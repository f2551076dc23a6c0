#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/machine_memory.h"
#include "base/printing.h"
#include "cli/commands.h"
#include "cli/model_names.h"
#include "cli/plan_page.h"
#include "config/report.h"
#include "config/resolve.h"
#include "inputs/model_inputs.h"
#include "offload/choose_io.h"
#include "plan/byte_size.h"
#include "plan/packing.h"
#include "plan/proposal.h"
#include "plan/report.h"
#include <fmt/format.h>

namespace zeroth::cli {
namespace {

namespace fs = std::filesystem;
using config::RunConfig;

fs::path model_file(const config::ModelSettings& model) {
  if (!model.model_config.empty()) {
    return model.model_config;
  }
  if (model.model_name_or_path.empty()) {
    throw Error(ErrorKind::kConfig,
                "--model_config or --model_name_or_path is required: a plan needs the model's "
                "shape\n  Give a config.json; weights are not read.");
  }
  return fs::path(model.model_name_or_path) / "config.json";
}

std::string source_of(const RunConfig& config, const std::string& key) {
  const config::SettingInForce* const setting = config.find(key);
  return setting == nullptr ? "default" : setting->source;
}

plan::Bytes size_in(const RunConfig& config, const std::string& key, const std::string& text) {
  const auto size = plan::parse_byte_size(text);
  if (!size) {
    throw Error(ErrorKind::kConfig,
                fmt::format("{} \"{}\" ({}) is no size of memory\n  Write a number and its unit: "
                            "80GiB (of 2^30 bytes), 80GB (of 10^9).",
                            key,
                            text,
                            source_of(config, key)));
  }
  return *size;
}

// Where a rank's memory comes from, in words, with its size.
struct Machine {
  plan::Budget budget;
  std::string source;
};

// A device's own memory, or the ranks' equal shares of a host's.
Machine machine_of(const RunConfig& config, const plan::PlanInput& input) {
  const config::PlanSettings& asked = config.plan;
  std::optional<plan::Bytes> host;
  if (!asked.host_memory.empty()) {
    host = size_in(config, "host_memory", asked.host_memory);
  }
  if (!asked.device_memory.empty()) {
    return {.budget = {.device = size_in(config, "device_memory", asked.device_memory),
                       .host = host,
                       .disk = std::nullopt},
            .source = "device_memory " + asked.device_memory};
  }
  const plan::Bytes shared = host.value_or(plan::Bytes(machine_memory()));
  const std::int64_t ranks = input.ranks_on_host();
  return {.budget = {.device = plan::Bytes(shared.count() / ranks),
                     .host = std::nullopt,
                     .disk = std::nullopt},
          .source = fmt::format("{} {}, for {} rank{}",
                                host ? "host_memory" : "this machine's",
                                plan::byte_text(shared),
                                ranks,
                                ranks == 1 ? "" : "s")};
}

// Of the folder that the settings name for state; files need a speed to have a price.
std::optional<offload::DiskSpeed> measured_disk(const config::OffloadSettings& settings) {
  const std::string& folder =
      settings.optimizer_path.empty() ? settings.parameter_path : settings.optimizer_path;
  if (folder.empty() || !settings.uses_files()) {
    return std::nullopt;
  }
  constexpr std::int64_t kProbeBytes = std::int64_t{256} << 20;
  return offload::choose_io(folder, settings.transfers, std::nullopt, kProbeBytes).speed;
}

std::vector<std::string> left_out(const RunConfig& config) {
  std::vector<std::string> notes;
  for (const config::IdleSetting& setting : config.planned) {
    notes.push_back(fmt::format(
        "{} is planned and left out of this plan ({})", setting.as_written, setting.source));
  }
  return notes;
}

// Before the plan is made: whoever goes on with the file should not wait for that.
void check_target(const config::PlanSettings& settings) {
  if (settings.write.empty()) {
    return;
  }
  std::error_code error;
  const fs::path folder = fs::path(settings.write).parent_path();
  if (!folder.empty() && !fs::is_directory(folder, error)) {
    throw Error(ErrorKind::kConfig,
                fmt::format("--write {}: there is no folder {}\n  Make it, or choose another name.",
                            settings.write,
                            folder.string()));
  }
  if (fs::is_directory(settings.write, error)) {
    throw Error(ErrorKind::kConfig,
                fmt::format("--write {}: it is a folder\n  Give the name of a file in it.",
                            settings.write));
  }
  if (!settings.overwrite && fs::exists(settings.write, error)) {
    throw Error(ErrorKind::kConfig,
                fmt::format("--write {}: the file is there already\n  Choose another name, or "
                            "--overwrite to replace it.",
                            settings.write));
  }
}

// nullopt: none is asked for, or nothing fits.
std::optional<plan::ProposalFile> proposal_file(const plan::Plan& plan, const RunConfig& config) {
  const auto proposal = config.plan.write.empty() ? std::nullopt : plan::least_that_fits(plan);
  return proposal ? std::optional(plan::ds_config(plan, *proposal, config, config.plan.write))
                  : std::nullopt;
}

// Whoever goes on with the file must not go on without it.
void write_proposal(const plan::Plan& plan,
                    const std::optional<plan::ProposalFile>& proposal,
                    const std::string& file) {
  if (!proposal) {
    throw Error(ErrorKind::kMemory,
                fmt::format("--write {}: nothing was written, for nothing fits into {} a rank\n  "
                            "The plan says how much is missing.",
                            file,
                            plan::byte_text(plan.budget.device)));
  }
  write_file_atomically(file, proposal->text);
}

void print(const std::string& text) {
  std::fputs(visible(text).c_str(), stdout);
}

std::vector<std::string> notes_of(const plan::Plan& plan,
                                  const std::optional<plan::ProposalFile>& proposal,
                                  const RunConfig& config) {
  std::vector<std::string> notes = left_out(config);
  const std::vector<std::string> more = plan::notes_of(plan);
  notes.insert(notes.end(), more.begin(), more.end());
  if (proposal) {
    for (const std::string& difference : proposal->differences) {
      notes.push_back(
          fmt::format("{}, read back, differs from this plan: {}", config.plan.write, difference));
    }
  }
  return notes;
}

void print_plan(const plan::Plan& plan,
                const RunConfig& config,
                const Machine& machine,
                const std::vector<std::string>& notes) {
  if (!config.json_output) {
    print(config::start_table(config) + "\n" + plan_page(plan, machine.source, notes));
    return;
  }
  Json json = plan::to_json(plan);
  const auto updates = config::outlook_of(config, std::nullopt).total_updates;
  json["updates"] = updates ? Json(*updates) : Json();
  json["notes"] = notes;
  print(json_text(json) + "\n");
}

}  // namespace

int run_plan(Arguments arguments) {
  config::Resolution resolution =
      config::resolve_all(config::Command::kPlan, arguments, config::process_environment());
  resolution.problems.throw_if_any();
  find_models(resolution.config);
  const RunConfig& config = resolution.config;
  check_target(config.plan);
  const formats::ModelConfig model = inputs::model_config_of(config, model_file(config.model));
  plan::PlanInput input = plan::input_of(config, model);
  Machine machine = machine_of(config, input);
  input = plan::settle_packing(input, plan::packing_room(input, machine.budget.device));
  machine.budget.disk = measured_disk(config.offload);
  const plan::Plan plan = plan::make_plan(input, machine.budget);
  const std::optional<plan::ProposalFile> proposal = proposal_file(plan, config);
  print_plan(plan, config, machine, notes_of(plan, proposal, config));
  if (!config.plan.write.empty()) {
    write_proposal(plan, proposal, config.plan.write);
    if (!config.json_output) {
      print(fmt::format("written: {}\n", config.plan.write));
    }
  }
  return 0;
}

}  // namespace zeroth::cli
