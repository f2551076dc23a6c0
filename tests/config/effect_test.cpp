// Mutation of runs, generated from the schema: a key set where it has no effect, set in two
// sources, and changed while it is in effect.
#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "config/sample_values.h"
#include "config/support.h"
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace zeroth::config {
namespace {

using Arguments = std::vector<std::string>;

// Options of runs in which one key or another has an effect, or has none.
std::vector<Arguments> all_arguments() {
  std::vector<Arguments> all{{},
                             {"--ranks=2"},
                             {"--ranks=2", "--zero_stage=1"},
                             {"--ranks=2", "--zero_stage=3"},
                             {"--ranks=2", "--batch_size=2", "--gradient_accumulation_steps=2"},
                             {"--zero_stage=3", "--bf16=true", "--finetuning_type=full"},
                             {"--bf16=true"},
                             {"--fp16=true"},
                             {"--gradient_checkpointing=true"},
                             {"--finetuning_type=full"},
                             {"--finetuning_type=freeze"},
                             {"--layers_to_transform=0"},
                             {"--loraplus_lr_ratio=16"},
                             {"--optim=sgd"},
                             {"--optim=adam"},
                             {"--optim=adagrad"},
                             {"--optim=lamb"},
                             {"--max_steps=5"},
                             {"--warmup_steps=5"},
                             {"--val_size=0.1"},
                             {"--eval_dataset=rows.json"},
                             {"--val_size=0.1", "--eval_strategy=steps"},
                             {"--stage=pt"},
                             {"--adapter_name_or_path=folder"},
                             {"--do_sample=true"},
                             {"--optimizer.params.torch_adam=true"},
                             {"--distributed_type=no"},
                             {"--shuffle=false"},
                             {"--save_strategy=no"},
                             {"--save_strategy=epoch"},
                             {"--load_best_model_at_end=true"},
                             {"--resume_from_checkpoint=latest"}};
  const std::string block = "--zero_optimization.offload_";
  const Arguments sharded{"--ranks=2", "--zero_stage=3"};
  const Arguments devices{block + "param.device=nvme", block + "optimizer.device=nvme"};
  const Arguments paths{block + "param.nvme_path=/x", block + "optimizer.nvme_path=/x"};
  for (const auto& [one, other] :
       {std::pair{paths, Arguments{}}, {devices, {}}, {devices, paths}}) {
    Arguments& files = all.emplace_back(sharded);
    files.insert(files.end(), one.begin(), one.end());
    files.insert(files.end(), other.begin(), other.end());
  }
  for (const std::string& schedule : find_declaration("lr_scheduler_type")->choices) {
    all.push_back({"--lr_scheduler_type=" + schedule});
  }
  return all;
}

bool sets(const Arguments& arguments, const Declaration& key) {
  return std::any_of(arguments.begin(), arguments.end(), [&](const std::string& argument) {
    return find_declaration(argument.substr(2, argument.find('=') - 2)) == &key;
  });
}

std::vector<Command> commands_of(const Declaration& key) {
  std::vector<Command> commands = all_commands();
  std::erase_if(commands, [&](Command command) { return (key.commands & bit(command)) == 0; });
  return commands;
}

struct Situation {
  Command command = Command::kTrain;
  Arguments arguments{};
};

Resolution run(Arguments arguments, const Situation& situation) {
  const Arguments& more = situation.arguments;
  arguments.insert(arguments.end(), more.begin(), more.end());
  return resolve_all(situation.command, arguments, {});
}

std::string recipe_with(const Declaration& key, const Json& value) {
  return scratch_file("recipe.yaml", document_with(Dialect::kRecipe, key.name, value).text);
}

constexpr auto kPlace = "recipe.yaml:1";

bool reads_recipes(Command command) {
  return (bit(command) & (kRunFamily | kCheckOnly)) != 0;
}

// One key in a recipe; the tools that read none take it on the command line.
Arguments given_to(Command command, const Declaration& key, const Json& value) {
  return {reads_recipes(command) ? recipe_with(key, value) : as_argument(key.name, value)};
}

std::string place_in(Command command) {
  return reads_recipes(command) ? kPlace : "command line";
}

const SettingInForce* in_force(const Resolution& resolution, const std::string& key) {
  for (const SettingInForce& setting : resolution.config.settings) {
    if (setting.key == key && setting.given) {
      return &setting;
    }
  }
  return nullptr;
}

const IdleSetting* idle(const Resolution& resolution, const std::string& key) {
  for (const IdleSetting& setting : resolution.config.without_effect) {
    if (setting.key == key) {
      return &setting;
    }
  }
  return nullptr;
}

// A value that may be in force, or have no effect: state that goes to the host is there anyway.
Json value_that(bool has_effect, const Declaration& key) {
  const bool place = key.name == "zero_optimization.offload_optimizer.device";
  return place && !has_effect ? Json("cpu") : sample_values(key).front();
}

// The first situation in which the key is in force, or has no effect.
std::optional<Situation> situation_where(bool has_effect, const Declaration& key) {
  static const std::vector<Arguments> all = all_arguments();
  const Json value = value_that(has_effect, key);
  for (const Command command : commands_of(key)) {
    const Arguments given = given_to(command, key, value);
    for (const Arguments& arguments : all) {
      if (sets(arguments, key) || (!reads_recipes(command) && !arguments.empty())) {
        continue;
      }
      const Situation situation{command, arguments};
      const Resolution resolution = run(given, situation);
      if (has_effect ? in_force(resolution, key.name) != nullptr
                     : idle(resolution, key.name) != nullptr) {
        return situation;
      }
    }
  }
  return std::nullopt;
}

bool is_of_a_run(const Declaration& key) {
  return (key.commands & (kRunFamily | kCheckOnly)) != 0;
}

Written entry_of(const Resolution& resolution, const std::string& source) {
  const auto found = std::find_if(resolution.account.begin(),
                                  resolution.account.end(),
                                  [&](const Written& written) { return written.source == source; });
  EXPECT_NE(found, resolution.account.end()) << source;
  return found == resolution.account.end() ? Written{} : *found;
}

// The values in force in a situation where the key is not given.
const RunConfig& values_without_it(const Situation& situation) {
  static std::map<std::pair<Command, Arguments>, RunConfig> known;
  const auto [there, added] = known.try_emplace({situation.command, situation.arguments});
  if (added) {
    there->second = values_of(run({}, situation).config);
  }
  return there->second;
}

void expect_listed(const Declaration& key, const Situation& situation) {
  const Command command = situation.command;
  const Json value = value_that(false, key);
  const Resolution with = run(given_to(command, key, value), situation);
  const IdleSetting* listed = idle(with, key.name);
  ASSERT_NE(listed, nullptr) << key.name;
  EXPECT_EQ(listed->source, place_in(command)) << key.name;
  EXPECT_GT(listed->why.size(), 5U) << key.name;
  const Written written = entry_of(with, place_in(command));
  EXPECT_EQ(written.outcome, Outcome::kWithoutEffect) << key.name;
  EXPECT_EQ(written.note, listed->why) << key.name;
  EXPECT_EQ(in_force(with, key.name), nullptr) << key.name;
  EXPECT_EQ(values_of(with.config), values_without_it(situation)) << key.name;
}

TEST(Mutation, AValueWithoutEffectIsListedAndChangesNothing) {
  std::map<std::string, std::size_t> counts;
  for (const Declaration& key : schema()) {
    const bool harmless = key.status == Status::kHarmless;
    if (!is_of_a_run(key) || !(harmless || key.without_effect)) {
      continue;
    }
    const std::optional<Situation> situation = situation_where(false, key);
    EXPECT_TRUE(situation.has_value()) << key.name << " is never without effect";
    if (situation.has_value()) {
      expect_listed(key, *situation);
    }
    ++counts[harmless ? "harmless" : "conditional"];
  }
  fmt::print("without effect: {} keys where another setting says so, {} in every run\n",
             counts["conditional"],
             counts["harmless"]);
}

TEST(Mutation, TheCommandLineOverridesAFileAndShowsIt) {
  std::size_t tried = 0;
  for (const Declaration& key : schema()) {
    if (!is_of_a_run(key) || !key.field.set) {
      continue;
    }
    const std::optional<Situation> situation = situation_where(true, key);
    ASSERT_TRUE(situation.has_value()) << key.name << " is never in force";
    const std::vector<Json> values = sample_values(key);
    ASSERT_EQ(values.size(), 2U) << key.name;
    const Resolution resolution =
        run({recipe_with(key, values[0]), as_argument(key.name, values[1])}, *situation);
    const SettingInForce* setting = in_force(resolution, key.name);
    ASSERT_NE(setting, nullptr) << key.name << messages(resolution.problems);
    EXPECT_EQ(setting->value, values[1]) << key.name;
    EXPECT_EQ(setting->source, "command line") << key.name;
    ASSERT_EQ(setting->overrides.size(), 1U) << key.name;
    EXPECT_EQ(setting->overrides[0].value, values[0]) << key.name;
    EXPECT_EQ(setting->overrides[0].source, kPlace) << key.name;
    EXPECT_EQ(entry_of(resolution, kPlace).outcome, Outcome::kOverridden) << key.name;
    EXPECT_EQ(entry_of(resolution, kPlace).note, "command line") << key.name;
    EXPECT_EQ(entry_of(resolution, "command line").outcome, Outcome::kInForce) << key.name;
    ++tried;
  }
  fmt::print("two sources: {} keys\n", tried);
  EXPECT_GT(tried, 50U);
}

// They hold the run to the user's words or name further files: what they change is not in the
// RunConfig, and their own tests show it.
bool acts_elsewhere(const Declaration& key) {
  constexpr std::array kThese{"strict",
                              "expect",
                              "min_effective_batch",
                              "diff",
                              "world_size",
                              "deepspeed",
                              "accelerate_config",
                              "dataset_dir"};
  return std::find(kThese.begin(), kThese.end(), key.name) != kThese.end();
}

TEST(Mutation, AChangedValueChangesTheRun) {
  std::size_t tried = 0;
  for (const Declaration& key : schema()) {
    if (key.status != Status::kInForce || acts_elsewhere(key) || key.parts) {
      continue;
    }
    const std::optional<Situation> situation = situation_where(true, key);
    ASSERT_TRUE(situation.has_value()) << key.name << " is never in force";
    const std::vector<Json> values = sample_values(key);
    ASSERT_EQ(values.size(), 2U) << key.name;
    const Command command = situation->command;
    const Resolution one = run(given_to(command, key, values[0]), *situation);
    const Resolution other = run(given_to(command, key, values[1]), *situation);
    EXPECT_NE(values_of(one.config), values_of(other.config)) << key.name;
    if (key.field.get) {
      EXPECT_EQ(key.field.get(one.config), values[0]) << key.name;
      EXPECT_EQ(key.field.get(other.config), values[1]) << key.name;
    }
    ++tried;
  }
  fmt::print("changed while in effect: {} keys\n", tried);
  EXPECT_GT(tried, 50U);
}

// A value that stands for several keys reaches them.
TEST(Mutation, AValueThatStandsForOthersReachesThem) {
  const std::map<std::string, std::vector<std::string>> samples{
      {"mixed_precision", {"bf16", "no"}},
      {"optimizer.params.betas", {"0.5,0.75", "0.25,0.5"}},
      {"optim_args", {"momentum=0.5", "momentum=0.75"}}};
  std::size_t tried = 0;
  for (const Declaration& key : schema()) {
    const auto sample = samples.find(key.name);
    if (!key.parts || key.status != Status::kInForce || sample == samples.end()) {
      continue;
    }
    std::vector<RunConfig> configs;
    for (const std::string& value : sample->second) {
      const Resolution resolution =
          run({"--" + key.name + "=" + value},
              {.arguments = key.name == "optim_args" ? Arguments{"--optim=sgd"} : Arguments{}});
      configs.push_back(values_of(resolution.config));
    }
    EXPECT_NE(configs[0], configs[1]) << key.name;
    ++tried;
  }
  EXPECT_EQ(tried, samples.size());
}

}  // namespace
}  // namespace zeroth::config
