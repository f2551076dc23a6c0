#include "config/expectations.h"

#include <string>

#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

// Below this an update is mostly the noise of its rows.
constexpr std::int64_t kSmallBatch = 16;

void expect(const std::string& text, const Values& values, Problems& problems) {
  const auto equals = text.find('=');
  const std::string name(trim(text.substr(0, equals)));
  const Declaration* key = find_declaration(name);
  if (equals == std::string::npos || key == nullptr) {
    problems.add(ProblemKind::kUsage,
                 "expect",
                 equals == std::string::npos
                     ? fmt::format("--expect takes KEY=VALUE, not \"{}\"", text)
                     : fmt::format("--expect {}: there is no key {}", text, name));
    return;
  }
  const ParsedValue wanted = parse_value(*key, trim(text.substr(equals + 1)));
  if (!wanted.error.empty()) {
    problems.add(ProblemKind::kType, "expect", fmt::format("--expect {} {}", name, wanted.error));
  } else if (wanted.value != values[key->name]) {
    problems.add({.kind = ProblemKind::kExpectation,
                  .key = key->name,
                  .message = fmt::format("--expect {}={}: it is {} ({})",
                                         name,
                                         shown(unless_secret(*key, wanted.value)),
                                         shown(unless_secret(*key, values[key->name])),
                                         values.source(key->name).text),
                  .sources = {values.source(key->name).text}});
  }
}

void hold_to_strict(const RunConfig& config, Problems& problems) {
  for (const SettingInForce& setting : config.settings) {
    for (const WeakerValue& weaker : setting.overrides) {
      problems.add({.kind = ProblemKind::kExpectation,
                    .key = setting.key,
                    .message = fmt::format("--strict: {} {} ({}) overrides {} ({})",
                                           setting.key,
                                           shown(setting.value),
                                           setting.source,
                                           shown(weaker.value),
                                           weaker.source),
                    .sources = {setting.source, weaker.source}});
    }
  }
  for (const auto& [settings, what] : {std::pair(&config.without_effect, "has no effect"),
                                       std::pair(&config.planned, "is planned")}) {
    for (const IdleSetting& setting : *settings) {
      problems.add({.kind = ProblemKind::kExpectation,
                    .key = setting.key,
                    .message = fmt::format("--strict: {} {} {}: {} ({})",
                                           setting.key,
                                           shown(setting.value),
                                           what,
                                           setting.why,
                                           setting.source),
                    .sources = {setting.source}});
    }
  }
}

void check_batch_size(const Values& values, RunConfig& config, Problems& problems) {
  if (values.command() != Command::kTrain || !values["train_batch_size"].is_number_integer()) {
    return;
  }
  const auto rows = values["train_batch_size"].get<std::int64_t>();
  const Json& least = values["min_effective_batch"];
  const std::string batch = fmt::format("an update takes {} rows ({} x {} x {})",
                                        rows,
                                        shown(values["per_device_train_batch_size"]),
                                        shown(values["gradient_accumulation_steps"]),
                                        config.grid.dp);
  if (least.is_number_integer() && rows < least.get<std::int64_t>()) {
    problems.add({.kind = ProblemKind::kExpectation,
                  .key = "train_batch_size",
                  .message = fmt::format("--min_effective_batch {}: {}", shown(least), batch),
                  .sources = {values.source("train_batch_size").text}});
  } else if (least.is_null() && rows < kSmallBatch) {
    config.notices.push_back(
        fmt::format("{}, fewer than {}: gradients are noisy; --min_effective_batch sets the least",
                    batch,
                    kSmallBatch));
  }
}

}  // namespace

void check_expectations(const Values& values, RunConfig& config, Problems& problems) {
  for (const Json& text : values["expect"]) {
    expect(text.get<std::string>(), values, problems);
  }
  check_batch_size(values, config, problems);
  if (values.is("strict", true)) {
    hold_to_strict(config, problems);
  }
}

}  // namespace zeroth::config
