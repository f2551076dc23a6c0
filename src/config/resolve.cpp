#include "config/resolve.h"

#include <cstdlib>
#include <filesystem>

#include "config/auto_rules.h"
#include "config/batch_rules.h"
#include "config/classify.h"
#include "config/command_line.h"
#include "config/engine_rules.h"
#include "config/expectations.h"
#include "config/merge.h"
#include "config/placement.h"
#include "config/read_files.h"
#include "config/replaced_blocks.h"
#include "config/schedule_rules.h"
#include "config/schema.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

// Speaks about a run without starting it.
bool only_checks(Command command) {
  return (bit(command) & kCheckOnly) != 0;
}

Command command_in_force(Command command) {
  return only_checks(command) ? Command::kTrain : command;
}

bool accepts_ranks(Command command) {
  return accepts(command, *find_declaration("ranks"));
}

// Who says how many ranks there are: --world_size of `check`, an option or file, the launcher.
void place_ranks(Command command, const Placement& place, Values& values) {
  if (only_checks(command) && values.given("world_size")) {
    Setting setting = values.setting("ranks");
    if (values.given("ranks") && setting.value != values["world_size"]) {
      setting.overrides.insert(setting.overrides.begin(), {setting.value, setting.source});
    }
    setting.value = setting.written = values["world_size"];
    setting.source = {SourceKind::kCommandLine, "--world_size"};
    setting.spelled = "world_size";
    values.put("ranks", std::move(setting));
  } else if (place.launched() && accepts_ranks(command) && !values.given("ranks")) {
    values.put("ranks", place.world_size, {SourceKind::kRule, place.source + " (environment)"});
  }
}

void apply_rules(Values& values) {
  for (const Declaration& key : schema()) {
    if (key.rule && !values.given(key.name)) {
      if (std::optional<RuleValue> derived = key.rule(values)) {
        Setting setting = values.setting(key.name);
        setting.value = std::move(derived->value);
        setting.source = {SourceKind::kRule, std::move(derived->text)};
        values.put(key.name, std::move(setting));
      }
    }
  }
}

void place_in_folder(const Values& values, std::vector<std::string>& files) {
  if (values["dataset_dir"].is_null()) {
    return;
  }
  const std::filesystem::path folder = values["dataset_dir"].get<std::string>();
  for (std::string& file : files) {
    file = (folder / file).string();  // an absolute file stays as it is
  }
}

void refuse_planned(const RunConfig& config, Problems& problems) {
  for (const IdleSetting& setting : config.planned) {
    const bool option = setting.source == "command line";
    problems.add({.kind = ProblemKind::kPlanned,
                  .key = setting.key,
                  .message = fmt::format("{}{}: not supported yet: {} ({})",
                                         option ? "--" : setting.source + ": ",
                                         setting.as_written,
                                         setting.why,
                                         setting.source),
                  .sources = {setting.source}});
  }
}

void finish(const Values& values, const Placement& place, RunConfig& config) {
  config.launch.kind = place.kind;
  config.launch.rank = place.rank;
  config.launch.run_name = place.run_name;
  place_in_folder(values, config.data.dataset);
  place_in_folder(values, config.data.eval_dataset);
}

}  // namespace

Environment process_environment() {
  Environment environment;
  for (const std::string& name : launch_variables()) {
    if (const char* value = std::getenv(name.c_str())) {
      environment.emplace(name, value);
    }
  }
  return environment;
}

void settle(Command command,
            Gathered gathered,
            const Placement& place,
            const Settlement& settlement,
            Resolution& result) {
  Problems& problems = result.problems;
  const std::vector<IdleSetting> replaced = take_replaced_blocks(gathered);
  Values values = defaults_of(command_in_force(command));
  merge(gathered, values, problems);
  place_ranks(command, place, values);
  if (settlement.defaults) {
    settlement.defaults(values);
  }
  fill_from_model(values);
  choose_adam(values);
  apply_rules(values);
  RunConfig& config = result.config;
  config.command = values.command();
  if (accepts_ranks(values.command())) {
    config.grid = solve_grid(values, place, problems);
    solve_batch(values, config.grid, problems);
  }
  check_rules(values, place, only_checks(command) || !settlement.requires_inputs, problems);
  classify(command, values, gathered, config, problems);
  config.without_effect.insert(config.without_effect.end(), replaced.begin(), replaced.end());
  config.notices.insert(config.notices.end(), gathered.notices.begin(), gathered.notices.end());
  if (settlement.restrict_keys) {
    settlement.restrict_keys(values, gathered, config, problems);
  }
  if (config.command == Command::kTrain) {
    check_schedule(values, config, problems);
    const std::vector<std::string> notices = engine_notices(values);
    config.notices.insert(config.notices.end(), notices.begin(), notices.end());
  }
  check_expectations(values, config, problems);
  finish(values, place, config);
  result.account = std::move(gathered.account);
  if (values.given("diff")) {
    result.other_setup = values["diff"].get<std::string>();
  }
}

Resolution resolve_all(Command command,
                       std::span<const std::string> arguments,
                       const Environment& environment) {
  Resolution result;
  Gathered gathered;
  const std::string recipe = read_command_line(command, arguments, gathered, result.problems);
  gather_files(recipe, gathered, result.problems);
  const Placement place = placement_of(environment, result.problems);
  settle(command, std::move(gathered), place, {}, result);
  return result;
}

RunConfig config_or_error(Resolution result) {
  refuse_planned(result.config, result.problems);
  result.problems.throw_if_any();
  return std::move(result.config);
}

RunConfig resolve(Command command,
                  std::span<const std::string> arguments,
                  const Environment& environment) {
  return config_or_error(resolve_all(command, arguments, environment));
}

}  // namespace zeroth::config
