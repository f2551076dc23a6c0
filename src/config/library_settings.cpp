#include "config/library_settings.h"

#include <algorithm>
#include <array>
#include <set>
#include <string_view>

#include "base/error.h"
#include "config/dialect.h"
#include "config/document.h"
#include "config/read_files.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

constexpr auto kTotal = "scheduler.params.total_num_steps";
constexpr auto kElsewhere =
    "a setting of zeroth train: the program that uses the library decides it";
constexpr auto kJoined = "the ranks have joined before: RuntimeOptions has it";

// Those of the command's keys that say how the engine trains, whatever it trains.
bool acts_here(const std::string& key) {
  static const std::set<std::string> names{"per_device_train_batch_size",
                                           "gradient_accumulation_steps",
                                           "train_batch_size",
                                           "ranks",
                                           "zero_stage",
                                           "reduce_bucket_size",
                                           "optim",
                                           "optim_args",
                                           "learning_rate",
                                           "weight_decay",
                                           "adam_beta1",
                                           "adam_beta2",
                                           "adam_epsilon",
                                           "sgd_momentum",
                                           "max_grad_norm",
                                           "max_skipped_updates",
                                           "max_steps",
                                           "lr_scheduler_type",
                                           "lr_scheduler_kwargs",
                                           "warmup_steps",
                                           "warmup_ratio",
                                           "bf16",
                                           "fp16",
                                           "communication_data_type",
                                           "gradient_checkpointing",
                                           "seed",
                                           "deepspeed",
                                           "accelerate_config",
                                           "strict",
                                           "expect",
                                           "min_effective_batch"};
  constexpr std::array<std::string_view, 8> kBlocks{"zero_optimization.",
                                                    "aio.",
                                                    "optimizer.params.",
                                                    "scheduler.params.",
                                                    "lr_scheduler_kwargs.",
                                                    "fp16.",
                                                    "bf16.",
                                                    "data_types."};
  return names.contains(key) || std::any_of(kBlocks.begin(), kBlocks.end(), [&](auto block) {
           return key.starts_with(block);
         });
}

const char* reason_elsewhere(const std::string& key) {
  return key == "start_timeout" || key == "threads" ? kJoined : kElsewhere;
}

// A number, a text or a list of them, as a file would hold it.
Node node_of(const Json& value) {
  Node node{.kind = Node::Kind::kText, .text = value.is_string() ? value.get<std::string>() : ""};
  if (value.is_array()) {
    node.kind = Node::Kind::kList;
    std::transform(value.begin(), value.end(), std::back_inserter(node.items), node_of);
  } else if (!value.is_string()) {
    node.kind = value.is_boolean() ? Node::Kind::kBoolean : Node::Kind::kNumber;
    node.text = value.dump();
  }
  return node;
}

void refuse(Gathered& gathered, Problems& problems, const CodeValue& value, Problem problem) {
  problem.sources = {kCodeSource};
  gathered.account.push_back({.path = value.key,
                              .value = value.value,
                              .source = kCodeSource,
                              .outcome = Outcome::kRefused,
                              .note = problem.message});
  problems.add(std::move(problem));
}

void gather_value(const CodeValue& value, Gathered& gathered, Problems& problems) {
  const Declaration* key = find_declaration(value.key);
  if (key == nullptr || !accepts(Command::kTrain, *key)) {
    refuse(gathered, problems, value, unknown_key(Dialect::kRecipe, value.key, kCodeSource));
    return;
  }
  ParsedValue parsed = parse_node(*key, node_of(value.value));
  if (!parsed.error.empty()) {
    refuse(gathered,
           problems,
           value,
           {.kind = parsed.out_of_range ? ProblemKind::kRange : ProblemKind::kType,
            .key = key->name,
            .message = fmt::format("{}: {} {}", kCodeSource, value.key, parsed.error)});
    return;
  }
  Statement statement;
  statement.written = key->type == ValueType::kChoice ? value.value : parsed.value;
  statement.value = std::move(parsed.value);
  statement.source = {SourceKind::kCommandLine, kCodeSource};
  statement.spelled = value.key;
  give(gathered, *key, std::move(statement), problems);
}

void gather_text(const std::string& text,
                 std::size_t index,
                 Gathered& gathered,
                 Problems& problems) {
  const std::string name = index == 0 ? "JSON text" : fmt::format("JSON text {}", index + 1);
  try {
    gather(read_json(text, name, problems), Dialect::kDeepSpeed, name, gathered, problems);
  } catch (const Error& error) {
    problems.add(
        {.kind = ProblemKind::kFile, .key = "", .message = error.what(), .sources = {name}});
  }
}

void keep_rate_constant(Values& values) {
  if (!values.given("lr_scheduler_type")) {
    values.put(
        "lr_scheduler_type", "constant", Source{SourceKind::kRule, "no scheduler is asked for"});
  }
}

// What became of a written value, told anew.
void settle_account(Gathered& gathered, std::size_t entry, Outcome outcome, const char* note) {
  gathered.account[entry].outcome = outcome;
  gathered.account[entry].note = note;
}

void take_out(const SettingInForce& line,
              const Setting& setting,
              Gathered& gathered,
              RunConfig& config,
              Problems& problems) {
  const char* why = reason_elsewhere(line.key);
  if (setting.source.kind == SourceKind::kCommandLine) {
    problems.add({.kind = ProblemKind::kMisplaced,
                  .key = line.key,
                  .message = fmt::format("{}: {} is {}", kCodeSource, setting.spelled, why),
                  .sources = {kCodeSource}});
    settle_account(gathered, setting.entry, Outcome::kRefused, why);
  } else {
    config.without_effect.push_back(
        {.key = line.key, .value = line.value, .source = line.source, .why = why});
    settle_account(gathered, setting.entry, Outcome::kWithoutEffect, why);
  }
}

void keep_engine_keys(const Values& values,
                      Gathered& gathered,
                      RunConfig& config,
                      Problems& problems) {
  std::vector<SettingInForce> kept;
  for (SettingInForce& line : config.settings) {
    if (acts_here(line.key)) {
      kept.push_back(std::move(line));
    } else if (line.given) {
      take_out(line, values.setting(line.key), gathered, config, problems);
    }
  }
  config.settings = std::move(kept);
}

void require_length(const Values& values, const RunConfig& config, Problems& problems) {
  const ScheduleSettings& schedule = config.schedule;
  const bool known = schedule.max_steps > 0 || schedule.total_num_steps;
  const bool by_share = arithmetic::uses_warmup(schedule.kind) && schedule.warmup_steps == 0 &&
                        schedule.warmup_ratio > 0 && schedule.max_steps <= 0;
  if ((arithmetic::uses_total(schedule.kind) && !known) || by_share) {
    const char* key = by_share ? "warmup_ratio" : "lr_scheduler_type";
    problems.add({.kind = ProblemKind::kMissing,
                  .key = key,
                  .message = fmt::format("{} {} ({}) needs the number of updates: set max_steps{}",
                                         key,
                                         shown(values[key]),
                                         values.source(key).text,
                                         by_share ? "" : fmt::format(" or {}", kTotal)),
                  .sources = {values.source(key).text}});
  }
}

// Without a launcher the placement tells of one rank, which no other check compares.
void check_single_rank(const Values& values, const Placement& place, Problems& problems) {
  if (!place.launched() && !values.is("ranks", 1)) {
    const Setting& setting = values.setting("ranks");
    problems.add(
        {.kind = ProblemKind::kPlacement,
         .key = "ranks",
         .message = fmt::format("{} {} ({}), but this program was started as one rank\n"
                                "    Start it on several: zeroth launch --ranks {} -- PROGRAM ...",
                                setting.spelled,
                                shown(setting.value),
                                setting.source.text,
                                shown(setting.value)),
         .sources = {setting.source.text}});
  }
}

}  // namespace

Resolution resolve_library(const LibrarySources& sources, const Placement& place) {
  Resolution result;
  Problems& problems = result.problems;
  Gathered gathered;
  for (const CodeValue& value : sources.values) {
    gather_value(value, gathered, problems);
  }
  for (const std::string& file : sources.files) {
    gather_file(file, "ds config", Dialect::kDeepSpeed, gathered, problems);
  }
  for (std::size_t index = 0; index < sources.texts.size(); ++index) {
    gather_text(sources.texts[index], index, gathered, problems);
  }
  gather_files("", gathered, problems);
  const Settlement settlement{
      .requires_inputs = false,
      .defaults = keep_rate_constant,
      .restrict_keys =
          [&place](const Values& values, Gathered& all, RunConfig& config, Problems& found) {
            keep_engine_keys(values, all, config, found);
            require_length(values, config, found);
            check_single_rank(values, place, found);
          }};
  settle(Command::kTrain, std::move(gathered), place, settlement, result);
  return result;
}

}  // namespace zeroth::config
