#include "config/compare.h"

#include <algorithm>
#include <array>
#include <map>

#include "config/dialect.h"
#include "config/document.h"
#include "config/schema.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

// The dialect that knows most of the file's top-level keys; a recipe on a tie.
Dialect dialect_of(const Node& document) {
  constexpr std::array kInOrder{Dialect::kRecipe, Dialect::kDeepSpeed, Dialect::kAccelerate};
  Dialect best = kInOrder.front();
  std::size_t best_known = 0;
  for (const Dialect dialect : kInOrder) {
    std::size_t known = 0;
    for (const Member& member : document.members) {
      known += find_in(dialect, member.key) != nullptr || is_block(dialect, member.key) ? 1U : 0U;
    }
    if (known > best_known) {
      best = dialect;
      best_known = known;
    }
  }
  return best;
}

std::vector<std::string> arguments_for(const std::string& file, std::int64_t world_size) {
  Problems ignored;  // the second reading reports them
  const Node document = read_document(file, file, "set-up to compare with", ignored);
  const std::vector<std::string> ranks{"--world_size", std::to_string(world_size)};
  std::vector<std::string> arguments;
  switch (dialect_of(document)) {
    case Dialect::kRecipe:
      arguments = {file};
      break;
    case Dialect::kDeepSpeed:
      arguments = {"--deepspeed", file};
      break;
    case Dialect::kAccelerate:
      return {"--accelerate_config", file};  // it says how many ranks there are
  }
  arguments.insert(arguments.end(), ranks.begin(), ranks.end());
  return arguments;
}

struct Side {
  Json value;
  std::string source;
};

std::map<std::string, Side> in_force(const RunConfig& config) {
  std::map<std::string, Side> sides;
  for (const SettingInForce& setting : config.settings) {
    sides[setting.key] = {setting.value, setting.source};
  }
  return sides;
}

// Keys that say where the settings come from rather than what they are.
bool is_about_sources(const std::string& key) {
  constexpr std::array kKeys{
      "deepspeed", "accelerate_config", "diff", "world_size", "expect", "strict", "format"};
  return std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end();
}

}  // namespace

std::vector<Difference> compare(const Resolution& resolution, const Environment& environment) {
  std::vector<Difference> differences;
  if (!resolution.other_setup) {
    return differences;
  }
  const std::vector<std::string> arguments =
      arguments_for(*resolution.other_setup, resolution.config.grid.world_size);
  const Resolution other = resolve_all(Command::kCheck, arguments, environment);
  const std::map<std::string, Side> here = in_force(resolution.config);
  const std::map<std::string, Side> there = in_force(other.config);
  const Side none{nullptr, "without effect"};
  for (const Declaration& key : schema()) {
    const auto mine = here.find(key.name);
    const auto theirs = there.find(key.name);
    const Side& a = mine == here.end() ? none : mine->second;
    const Side& b = theirs == there.end() ? none : theirs->second;
    if (a.value != b.value && !is_about_sources(key.name)) {
      differences.push_back({key.name, a.value, a.source, b.value, b.source});
    }
  }
  return differences;
}

std::string difference_lines(const std::vector<Difference>& differences) {
  std::string text = "differences from the other set-up";
  for (const Difference& one : differences) {
    text += fmt::format("\n  {} {} ({}); there {} ({})",
                        one.key,
                        shown(one.value),
                        one.source,
                        shown(one.other_value),
                        one.other_source);
  }
  return text;
}

Json to_json(const std::vector<Difference>& differences) {
  Json list = Json::array();
  for (const Difference& one : differences) {
    list.push_back({{"key", one.key},
                    {"value", one.value},
                    {"source", one.source},
                    {"other_value", one.other_value},
                    {"other_source", one.other_source}});
  }
  return list;
}

}  // namespace zeroth::config
