#include "plan/proposal_carry.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string_view>

#include "arithmetic/schedule.h"
#include "base/printing.h"
#include "base/text.h"
#include "config/offload_names.h"
#include "config/schema.h"
#include <fmt/format.h>

namespace zeroth::plan {
namespace {

using config::Declaration;
using config::RunConfig;
using config::SettingInForce;

constexpr auto kBetas = "optimizer.params.betas";
constexpr auto kAdamMode = "optimizer.params.adam_w_mode";
constexpr std::string_view kOptimizerBlock = "optimizer.";
constexpr std::string_view kScheduleBlock = "scheduler.";

// Where state rests is a proposal's own business.
constexpr std::array kPlaces{
    config::kOptimizerDevice, config::kOptimizerPath, config::kParamDevice, config::kParamPath};

bool says_a_place(const std::string& key) {
  return std::find(kPlaces.begin(), kPlaces.end(), key) != kPlaces.end();
}

bool is_decided(const std::string& key) {
  constexpr std::array kDecided{"train_batch_size",
                                "per_device_train_batch_size",
                                "gradient_accumulation_steps",
                                "ranks",
                                "zero_stage",
                                "bf16",
                                "fp16",
                                "max_grad_norm",
                                "reduce_bucket_size"};
  return says_a_place(key) || std::find(kDecided.begin(), kDecided.end(), key) != kDecided.end();
}

// Named by the command itself, used up (the values of files are settings of their own), or said by
// the optimizer's type.
bool is_of_this_command(const Declaration& key) {
  constexpr std::array kHere{"deepspeed", "accelerate_config", "world_size", "format", kAdamMode};
  return std::find(kHere.begin(), kHere.end(), key.name) != kHere.end() ||
         !config::accepts(config::Command::kCheck, key);
}

bool is_deepspeed_schedule(const RunConfig& config) {
  const Json name = config.value_of("lr_scheduler_type");
  const auto kind = name.is_string()
                        ? arithmetic::schedule_named(name.get_ref<const std::string&>())
                        : std::nullopt;
  return kind && arithmetic::is_deepspeed(*kind);
}

// DeepSpeed's word for a type. Its Adam is AdamW unless told otherwise.
Json type_in_deepspeed(const Json& optim) {
  static const std::map<std::string, std::string> words{{"adamw_torch", "AdamW"},
                                                        {"adam_l2", "Adam"},
                                                        {"sgd", "SGD"},
                                                        {"lion", "Lion"},
                                                        {"adagrad", "Adagrad"},
                                                        {"lamb", "Lamb"}};
  const auto found = words.find(config::shown(optim));
  return found == words.end() ? optim : Json(found->second);
}

// Under its present name; nullopt: a ds_config.json has no such key.
std::optional<std::string> path_of(const Declaration& key, const RunConfig& config) {
  if (key.name == "adam_beta1" || key.name == "adam_beta2") {
    return kBetas;
  }
  const auto& old = key.old_names;
  const auto found =
      std::find_if(key.deepspeed.begin(), key.deepspeed.end(), [&](const std::string& path) {
        return std::find(old.begin(), old.end(), path) == old.end();
      });
  const bool elsewhere = found == key.deepspeed.end() ||
                         (found->starts_with(kScheduleBlock) && !is_deepspeed_schedule(config));
  return elsewhere ? std::nullopt : std::optional(*found);
}

Json written_at(const std::string& path, const Json& value, const RunConfig& config) {
  if (value.is_null()) {
    return "auto";
  }
  if (path == kBetas) {
    return Json::array({config.value_of("adam_beta1"), config.value_of("adam_beta2")});
  }
  return path == "optimizer.type" ? type_in_deepspeed(value) : value;
}

std::string source_of(const SettingInForce& setting) {
  return setting.auto_in.empty() ? setting.source
         : setting.value.is_null()
             ? "auto in " + setting.auto_in
             : fmt::format("auto in {}, filled from {}", setting.auto_in, setting.source);
}

Carried carry(const SettingInForce& setting, const RunConfig& config) {
  Carried carried{.key = setting.key, .value = setting.value, .source = source_of(setting)};
  if (const auto path = path_of(*config::find_declaration(setting.key), config)) {
    carried.path = *path;
    carried.written = written_at(*path, setting.value, config);
  }
  return carried;
}

bool is_carried(const SettingInForce& setting) {
  return (setting.given || !setting.auto_in.empty()) && may_be_carried(setting.key);
}

using CarriedList = std::vector<Carried>;

CarriedList::iterator first_at(CarriedList& all, std::string_view start) {
  return std::find_if(
      all.begin(), all.end(), [&](const Carried& one) { return one.path.starts_with(start); });
}

// At the head of its block.
void add_type(const char* key,
              std::string_view block,
              const RunConfig& config,
              CarriedList& carried) {
  const SettingInForce* type = config.find(key);
  const auto head = first_at(carried, block);
  const bool is_there = first_at(carried, std::string(block) + "type") != carried.end();
  if (type != nullptr && head != carried.end() && !is_there) {
    carried.insert(head, carry(*type, config));
  }
}

// AdamW, or Adam with the decay in the gradient: DeepSpeed tells them apart by a switch.
void add_adam_mode(const RunConfig& config, CarriedList& carried) {
  if (first_at(carried, kOptimizerBlock) != carried.end() &&
      config.value_of("optim") == "adam_l2") {
    carried.push_back({.key = kAdamMode,
                       .value = false,
                       .source = "optim is adam_l2",
                       .path = kAdamMode,
                       .written = false});
  }
}

// As `parse_value` reads it back: every digit of a number.
std::string word_of(const Json& value) {
  if (value.is_string()) {
    return value.get<std::string>();
  }
  if (!value.is_array()) {
    return json_text(value);
  }
  std::vector<std::string> parts;
  std::transform(value.begin(), value.end(), std::back_inserter(parts), word_of);
  return join(parts, ",");
}

}  // namespace

bool may_be_carried(const std::string& key) {
  const Declaration* declaration = config::find_declaration(key);
  return declaration != nullptr && !declaration->secret && !is_decided(key) &&
         !is_of_this_command(*declaration);
}

std::vector<Carried> carried_settings(const RunConfig& config) {
  CarriedList carried;
  for (const SettingInForce& setting : config.settings) {
    if (is_carried(setting)) {
      carried.push_back(carry(setting, config));
    }
  }
  add_type("optim", kOptimizerBlock, config, carried);
  add_type("lr_scheduler_type", kScheduleBlock, config, carried);
  add_adam_mode(config, carried);
  return carried;
}

std::vector<std::string> left_out_of(const RunConfig& config) {
  std::vector<std::string> lines;
  for (const config::IdleSetting& idle : config.planned) {
    lines.push_back(fmt::format("{} (planned)", idle.as_written));
  }
  for (const config::IdleSetting& idle : config.without_effect) {
    lines.push_back(fmt::format("{} (without effect: {})", idle.as_written, idle.why));
  }
  for (const SettingInForce& setting : config.settings) {
    if (setting.given && config::find_declaration(setting.key)->secret) {
      lines.push_back(fmt::format("{} (a secret)", setting.key));
    } else if (setting.given && setting.key == kAdamMode && setting.value == true) {
      lines.push_back(fmt::format("{} true (optimizer.type AdamW says it)", kAdamMode));
    } else if (setting.given && says_a_place(setting.key)) {
      lines.push_back(fmt::format("{} {} (this plan decides what is offloaded)",
                                  setting.key,
                                  config::shown(setting.value)));
    }
  }
  return lines;
}

std::vector<std::string> words_of(const std::vector<Carried>& carried) {
  std::vector<std::string> words;
  for (const Carried& one : carried) {
    const std::string word = one.value.is_null() ? "" : word_of(one.value);
    if (!one.path.empty() || word.empty()) {
      continue;
    }
    if (word.starts_with("--")) {  // else it would be read as the next option
      words.push_back(fmt::format("--{}={}", one.key, word));
    } else {
      words.insert(words.end(), {"--" + one.key, word});
    }
  }
  return words;
}

}  // namespace zeroth::plan
