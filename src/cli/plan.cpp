#include <cstdio>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/printing.h"
#include "cli/commands.h"
#include "cli/machine_memory.h"
#include "cli/plan_page.h"
#include "config/report.h"
#include "config/resolve.h"
#include "plan/byte_size.h"
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
  for (const config::SettingInForce& setting : config.settings) {
    if (setting.key == key) {
      return setting.source;
    }
  }
  return "default";
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
    return {
        .budget = {.device = size_in(config, "device_memory", asked.device_memory), .host = host},
        .source = "device_memory " + asked.device_memory};
  }
  const plan::Bytes shared = host.value_or(machine_memory());
  const std::int64_t ranks = input.ranks_on_host();
  return {.budget = {.device = plan::Bytes(shared.count() / ranks), .host = std::nullopt},
          .source = fmt::format("{} {}, for {} rank{}",
                                host ? "host_memory" : "this machine's",
                                plan::byte_text(shared),
                                ranks,
                                ranks == 1 ? "" : "s")};
}

std::vector<std::string> left_out(const RunConfig& config) {
  std::vector<std::string> notes;
  for (const config::IdleSetting& setting : config.planned) {
    notes.push_back(fmt::format("{} is planned and {} this plan ({})",
                                setting.as_written,
                                plan::is_planned_for(setting.key) ? "counted in" : "left out of",
                                setting.source));
  }
  return notes;
}

void refuse_existing_file(const config::PlanSettings& settings) {
  std::error_code error;
  if (!settings.write.empty() && !settings.overwrite && fs::exists(settings.write, error)) {
    throw Error(ErrorKind::kConfig,
                fmt::format("--write {}: the file is there already\n  Choose another name, or "
                            "--overwrite to replace it.",
                            settings.write));
  }
}

// Whoever goes on with the file must not go on without it.
void write_proposal(const plan::Plan& plan, const RunConfig& config) {
  const std::string& file = config.plan.write;
  const auto proposal = plan::least_that_fits(plan);
  if (!proposal) {
    throw Error(ErrorKind::kMemory,
                fmt::format("--write {}: nothing was written, for nothing fits into {} a rank\n  "
                            "The plan says how much is missing.",
                            file,
                            plan::byte_text(plan.budget.device)));
  }
  write_file_atomically(file, plan::ds_config(plan, *proposal, config, file));
}

void print(const std::string& text) {
  std::fputs(visible(text).c_str(), stdout);
}

void print_plan(const plan::Plan& plan, const RunConfig& config, const Machine& machine) {
  std::vector<std::string> notes = left_out(config);
  const std::vector<std::string> more = plan::notes_of(plan);
  notes.insert(notes.end(), more.begin(), more.end());
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
  const config::Resolution resolution =
      config::resolve_all(config::Command::kPlan, arguments, config::process_environment());
  resolution.problems.throw_if_any();
  const RunConfig& config = resolution.config;
  refuse_existing_file(config.plan);
  const formats::ModelConfig model = formats::read_model_config(model_file(config.model));
  const plan::PlanInput input = plan::input_of(config, model);
  const Machine machine = machine_of(config, input);
  const plan::Plan plan = plan::make_plan(input, machine.budget);
  print_plan(plan, config, machine);
  if (!config.plan.write.empty()) {
    write_proposal(plan, config);
    if (!config.json_output) {
      print(fmt::format("written: {}\n", config.plan.write));
    }
  }
  return 0;
}

}  // namespace zeroth::cli
