#include "library/parameter_groups.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace zeroth::library {
namespace {

std::string title_of(std::size_t index, const ParameterGroup& group) {
  return fmt::format("parameter group {} ({})", index + 1, fmt::join(group.names, ", "));
}

void check(std::size_t index, const ParameterGroup& group) {
  const double decay = group.weight_decay.value_or(0);
  const double factor = group.learning_rate_factor;
  const auto refuse = [&](const std::string& what) {
    throw Error(ErrorKind::kConfig, fmt::format("{}: {}", title_of(index, group), what));
  };
  if (group.names.empty()) {
    refuse("names is empty: give the parameters' names, * for all");
  }
  if (!(decay >= 0) || !std::isfinite(decay)) {
    refuse(fmt::format("weight_decay must be 0 or more, not {}", decay));
  }
  if (!(factor >= 0) || !std::isfinite(factor)) {
    refuse(fmt::format("learning_rate_factor must be 0 or more, not {}", factor));
  }
}

bool matches_any(const ParameterGroup& group, const std::string& name) {
  return std::any_of(group.names.begin(), group.names.end(), [&](const std::string& pattern) {
    return matches(pattern, name);
  });
}

struct Matched {
  std::int64_t named = 0;      // parameters that a pattern matches, taken by earlier groups or not
  std::int64_t trainable = 0;  // of those that became the group's
};

void treat(const ParameterGroup& group, models::Parameter& parameter) {
  parameter.rate_factor = group.learning_rate_factor;
  parameter.weight_decay = group.weight_decay;
  if (group.frozen) {
    parameter.trainable = false;
  }
}

std::string line_of(std::size_t index, const ParameterGroup& group, const Matched& matched) {
  std::string text = fmt::format("{}: {} parameters", title_of(index, group), matched.trainable);
  if (group.frozen) {
    return text + ", frozen";
  }
  if (group.weight_decay) {
    text += fmt::format(", weight_decay {:g}", *group.weight_decay);
  }
  if (group.learning_rate_factor != 1) {
    text += fmt::format(", learning rate x {:g}", group.learning_rate_factor);
  }
  return text;
}

std::string notice_of(std::size_t index,
                      const ParameterGroup& group,
                      const Matched& matched,
                      const std::vector<std::string>& names) {
  const std::string title = title_of(index, group);
  if (matched.named > 0) {
    return fmt::format(
        "{} is ignored: the parameters that it names are frozen, or an earlier "
        "group's",
        title);
  }
  std::vector<std::string> near;
  for (const std::string& pattern : group.names) {
    const std::vector<std::string> of_pattern = nearest(pattern, names, 1);
    near.insert(near.end(), of_pattern.begin(), of_pattern.end());
  }
  return fmt::format("{} is ignored: no parameter has such a name{}",
                     title,
                     near.empty() ? "" : fmt::format(" (did you mean {}?)", fmt::join(near, ", ")));
}

std::vector<std::string> names_of(const models::UnitList& units) {
  std::vector<std::string> names;
  for (const auto& unit : units) {
    for (const models::Parameter& parameter : unit->parameters()) {
      names.push_back(parameter.name);
    }
  }
  return names;
}

std::vector<Matched> match_all(const std::vector<ParameterGroup>& groups, models::UnitList& units) {
  std::vector<Matched> matched(groups.size());
  for (const auto& unit : units) {
    for (models::Parameter& parameter : unit->parameters()) {
      bool taken = false;
      for (std::size_t index = 0; index < groups.size(); ++index) {
        if (!matches_any(groups[index], parameter.name)) {
          continue;
        }
        ++matched[index].named;
        if (!taken && parameter.trainable) {
          ++matched[index].trainable;
          treat(groups[index], parameter);
        }
        taken = true;
      }
    }
  }
  return matched;
}

void require_something_to_train(const models::UnitList& units) {
  const bool any = std::any_of(units.begin(), units.end(), [](const auto& unit) {
    const auto& parameters = unit->parameters();
    return std::any_of(parameters.begin(), parameters.end(), [](const models::Parameter& p) {
      return p.trainable;
    });
  });
  if (!any) {
    throw Error(ErrorKind::kModel,
                fmt::format("nothing is trainable: all {} parameters are frozen\n  Set "
                            "requires_grad on those to train, and see which parameter groups "
                            "freeze.",
                            names_of(units).size()));
  }
}

}  // namespace

bool matches(const std::string& pattern, const std::string& name) {
  const std::vector<std::string> parts = split(pattern, '*');
  if (parts.size() == 1) {
    return pattern == name;
  }
  const std::string& last = parts.back();
  if (!name.starts_with(parts.front()) || !name.ends_with(last) ||
      name.size() < parts.front().size() + last.size()) {
    return false;
  }
  std::size_t at = parts.front().size();
  const std::size_t end = name.size() - last.size();
  for (std::size_t part = 1; part + 1 < parts.size(); ++part) {
    at = name.find(parts[part], at);
    if (at == std::string::npos || at + parts[part].size() > end) {
      return false;
    }
    at += parts[part].size();
  }
  return true;
}

GroupsInForce apply_groups(const std::vector<ParameterGroup>& groups, models::UnitList& units) {
  for (std::size_t index = 0; index < groups.size(); ++index) {
    check(index, groups[index]);
  }
  const std::vector<Matched> matched = match_all(groups, units);
  require_something_to_train(units);
  GroupsInForce in_force;
  for (std::size_t index = 0; index < groups.size(); ++index) {
    if (matched[index].trainable > 0) {
      in_force.lines.push_back(line_of(index, groups[index], matched[index]));
    } else {
      in_force.notices.push_back(notice_of(index, groups[index], matched[index], names_of(units)));
    }
  }
  return in_force;
}

}  // namespace zeroth::library
