#include "config/dialect.h"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include "base/text.h"
#include "config/problems.h"
#include <fmt/format.h>

namespace zeroth::config {
namespace {

constexpr std::array kDialects{Dialect::kDeepSpeed, Dialect::kAccelerate, Dialect::kRecipe};

std::vector<std::string> names_of_key(Dialect dialect, const Declaration& key) {
  if (dialect == Dialect::kDeepSpeed) {
    return key.deepspeed;
  }
  if (dialect == Dialect::kAccelerate) {
    return key.accelerate;
  }
  return all_names(key);
}

struct Index {
  std::unordered_map<std::string, const Declaration*> keys;
  std::set<std::string, std::less<>> blocks;
  std::vector<std::string> paths;
};

Index index_of(Dialect dialect) {
  Index index;
  for (const Declaration& key : schema()) {
    for (const std::string& path : names_of_key(dialect, key)) {
      index.keys.emplace(path, &key);
      index.paths.push_back(path);
      for (auto dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) {
        index.blocks.insert(path.substr(0, dot));
      }
    }
  }
  return index;
}

const Index& index(Dialect dialect) {
  static const std::array<Index, kDialects.size()> indexes{
      index_of(kDialects[0]), index_of(kDialects[1]), index_of(kDialects[2])};
  return indexes.at(static_cast<std::size_t>(dialect));
}

std::string_view parent_of(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view() : path.substr(0, dot);
}

std::string_view leaf_of(std::string_view path) {
  return path.substr(path.rfind('.') + 1);  // npos + 1 == 0
}

// Keys and blocks that stand beside `path`.
std::vector<std::string> siblings(Dialect dialect, std::string_view path) {
  const std::string_view parent = parent_of(path);
  std::vector<std::string> names;
  for (const std::string& known : index(dialect).paths) {
    if (parent_of(known) == parent) {
      names.emplace_back(known);
    }
  }
  for (const std::string& block : index(dialect).blocks) {
    if (parent_of(block) == parent) {
      names.push_back(block);
    }
  }
  return names;
}

// Where the dialect has a key of this last name.
std::vector<std::string> places_of(Dialect dialect, std::string_view leaf) {
  std::vector<std::string> places;
  for (const std::string& known : index(dialect).paths) {
    if (leaf_of(known) == leaf) {
      places.push_back(known);
    }
  }
  return places;
}

std::vector<std::string> nearest_leaves(const std::string& path,
                                        const std::vector<std::string>& candidates) {
  std::vector<std::string> leaves;
  for (const std::string& candidate : candidates) {
    leaves.emplace_back(leaf_of(candidate));
  }
  return nearest_names(std::string(leaf_of(path)), leaves);
}

// What people put into the wrong kind of file.
std::string in_another_dialect(Dialect dialect, std::string_view path) {
  const auto leaf = std::string(leaf_of(path));
  const Declaration* key = find_declaration(path);
  key = key == nullptr ? find_declaration(leaf) : key;
  if (key == nullptr) {
    return "";
  }
  const std::vector<std::string> here = names_of_key(dialect, *key);
  if (!here.empty()) {
    return fmt::format("here it is \"{}\"", here.front());
  }
  return fmt::format("it is --{} on the command line", key->name);
}

std::string quoted_list(const std::vector<std::string>& names) {
  return fmt::format("\"{}\"", join(names, "\" or \""));
}

}  // namespace

const char* file_of(Dialect dialect) noexcept {
  constexpr std::array kFiles{"a ds_config.json", "an Accelerate file", "a recipe"};
  return kFiles.at(static_cast<std::size_t>(dialect));
}

const Declaration* find_in(Dialect dialect, std::string_view path) {
  const auto found = index(dialect).keys.find(std::string(path));
  return found == index(dialect).keys.end() ? nullptr : found->second;
}

bool is_block(Dialect dialect, std::string_view path) {
  return index(dialect).blocks.contains(path);
}

const std::vector<std::string>& paths_in(Dialect dialect) {
  return index(dialect).paths;
}

std::vector<std::string> nearest_names(const std::string& word,
                                       const std::vector<std::string>& names) {
  constexpr std::size_t kMuchFarther = 3;
  std::vector<std::string> near = nearest(word, names);
  std::erase_if(
      near,
      [&, best = near.empty() ? 0 : edit_distance(word, near.front())](const std::string& name) {
        return edit_distance(word, name) >= best + kMuchFarther;
      });
  return near;
}

Problem unknown_key(Dialect dialect, const std::string& path, const std::string& source) {
  Problem problem{.kind = ProblemKind::kUnknown, .key = path, .message = "", .sources = {source}};
  if (const Declaration* meant = find_mistaken(path)) {
    const std::vector<std::string> here = names_of_key(dialect, *meant);
    problem.message = fmt::format("{}: unknown key \"{}\": write {}: {}",
                                  source,
                                  path,
                                  here.empty() ? "--" + meant->name : "\"" + here.front() + "\"",
                                  meant->help);
    return problem;
  }
  const std::vector<std::string> places = places_of(dialect, leaf_of(path));
  if (!places.empty()) {
    problem.kind = ProblemKind::kMisplaced;
    problem.message = fmt::format(
        "{}: unknown key \"{}\" (it belongs elsewhere: {})", source, path, quoted_list(places));
    return problem;
  }
  const std::vector<std::string> near = nearest_leaves(path, siblings(dialect, path));
  const std::string elsewhere = in_another_dialect(dialect, path);
  if (!near.empty() && elsewhere.empty()) {
    const std::string parent(parent_of(path));
    std::vector<std::string> full;
    for (const std::string& name : near) {
      full.push_back(parent.empty() ? name : parent + "." + name);
    }
    problem.message =
        fmt::format("{}: unknown key \"{}\" (did you mean {}?)", source, path, quoted_list(full));
  } else if (!elsewhere.empty()) {
    problem.kind = ProblemKind::kMisplaced;
    problem.message =
        fmt::format("{}: \"{}\" is no key of {}: {}", source, path, file_of(dialect), elsewhere);
  } else {
    const std::vector<std::string> anywhere = nearest_leaves(path, index(dialect).paths);
    problem.message = fmt::format(
        "{}: unknown key \"{}\"{}",
        source,
        path,
        anywhere.empty() ? fmt::format(" (nothing like it stands in {})", file_of(dialect))
                         : fmt::format(" (did you mean {}?)",
                                       quoted_list(places_of(dialect, anywhere.front()))));
  }
  return problem;
}

}  // namespace zeroth::config
