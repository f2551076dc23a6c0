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

std::size_t known_keys(Dialect dialect, const Node& block, const std::string& prefix) {
  std::size_t known = 0;
  for (const Member& member : block.members) {
    const std::string path = prefix.empty() ? member.key : prefix + "." + member.key;
    if (find_in(dialect, path) != nullptr && member.value.kind != Node::Kind::kBlock) {
      ++known;
    } else {
      known += known_keys(dialect, member.value, path);
    }
  }
  return known;
}

// The dialect that knows most of the file's keys. Recipes know every path, so a file of another
// kind wins a tie where it has blocks.
Dialect dialect_of(const Node& document) {
  const bool has_blocks =
      std::any_of(document.members.begin(), document.members.end(), [](const Member& member) {
        return member.value.kind == Node::Kind::kBlock;
      });
  const std::size_t recipe = known_keys(Dialect::kRecipe, document, "") + (has_blocks ? 0U : 1U);
  const std::size_t deepspeed = known_keys(Dialect::kDeepSpeed, document, "");
  const std::size_t accelerate = known_keys(Dialect::kAccelerate, document, "");
  if (accelerate > deepspeed && accelerate >= recipe) {
    return Dialect::kAccelerate;
  }
  return deepspeed >= recipe ? Dialect::kDeepSpeed : Dialect::kRecipe;
}

bool says_ranks(Dialect dialect, const Node& document) {
  return std::any_of(document.members.begin(), document.members.end(), [&](const Member& member) {
    const Declaration* key = find_in(dialect, member.key);
    return key != nullptr && key->name == "ranks";
  });
}

std::vector<std::string> arguments_for(const std::string& file, std::int64_t world_size) {
  Problems ignored;  // the second reading reports them
  const Node document = read_document(file, file, "set-up to compare with", ignored);
  const Dialect dialect = dialect_of(document);
  std::vector<std::string> arguments{file};
  if (dialect == Dialect::kDeepSpeed) {
    arguments.insert(arguments.begin(), "--deepspeed");
  } else if (dialect == Dialect::kAccelerate) {
    arguments.insert(arguments.begin(), "--accelerate_config");
  }
  if (!says_ranks(dialect, document)) {
    arguments.insert(arguments.end(), {"--world_size", std::to_string(world_size)});
  }
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
  for (const IdleSetting& setting : config.planned) {
    sides[setting.key] = {setting.value, setting.source + ", planned"};
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

std::vector<Difference> compare(Resolution& resolution, const Environment& environment) {
  std::vector<Difference> differences;
  if (!resolution.other_setup) {
    return differences;
  }
  const std::vector<std::string> arguments =
      arguments_for(*resolution.other_setup, resolution.config.grid.world_size);
  const Resolution other = resolve_all(Command::kCheck, arguments, environment);
  for (Problem problem : other.problems.all()) {
    problem.message = "the other set-up: " + problem.message;
    resolution.problems.add(std::move(problem));
  }
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
