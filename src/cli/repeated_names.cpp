#include "cli/repeated_names.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::cli {
namespace {

constexpr std::size_t kMostDigits = 9;

bool is_number(const std::string& part) {
  return !part.empty() && part.size() <= kMostDigits &&
         std::all_of(part.begin(), part.end(), [](char c) { return c >= '0' && c <= '9'; });
}

struct Group {
  std::vector<std::string> parts;      // of the first name
  std::vector<std::set<int>> numbers;  // at each part; empty: no number stands there
  std::string name;                    // of the first
  std::string form;
  std::int64_t count = 0;
};

void add(Group& group, const NamedForm& thing, const std::vector<std::string>& parts) {
  if (group.count++ == 0) {
    group.parts = parts;
    group.numbers.resize(parts.size());
    group.name = thing.name;
    group.form = thing.form;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (is_number(parts[i])) {
      group.numbers[i].insert(std::stoi(parts[i]));
    }
  }
}

std::string numbers_text(const std::set<int>& numbers) {
  const int first = *numbers.begin();
  const int last = *numbers.rbegin();
  const bool whole = static_cast<std::size_t>(last - first) + 1 == numbers.size();
  if (numbers.size() == 1) {
    return std::to_string(first);
  }
  // With holes the count behind the name says how many there are.
  return fmt::format("{{{}{}{}}}", first, whole ? ".." : ",..,", last);
}

RepeatedName as_one(const Group& group) {
  RepeatedName one{.name = group.name, .form = group.form, .count = group.count};
  if (group.count > 1) {
    std::vector<std::string> parts = group.parts;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (!group.numbers[i].empty()) {
        parts[i] = numbers_text(group.numbers[i]);
      }
    }
    one.name = join(parts, ".");
  }
  return one;
}

}  // namespace

std::string without_numbers(const std::string& name) {
  std::vector<std::string> parts = split(name, '.');
  std::replace_if(parts.begin(), parts.end(), is_number, "{}");
  return join(parts, ".");
}

std::vector<RepeatedName> repeated_names(const std::vector<NamedForm>& things) {
  std::map<std::pair<std::string, std::string>, std::size_t> place_of;
  std::vector<Group> groups;
  for (const NamedForm& thing : things) {
    const std::vector<std::string> parts = split(thing.name, '.');
    const auto [place, is_new] =
        place_of.try_emplace({without_numbers(thing.name), thing.form}, groups.size());
    if (is_new) {
      groups.emplace_back();
    }
    add(groups[place->second], thing, parts);
  }
  std::vector<RepeatedName> names;
  for (const Group& group : groups) {
    names.push_back(as_one(group));
  }
  return names;
}

}  // namespace zeroth::cli
