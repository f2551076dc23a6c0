#include "shapes/module_names.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include <fmt/format.h>

namespace zeroth::shapes {
namespace {

bool means_all(std::string_view target) {
  return target == "all" || target == formats::kAllLinear;
}

std::vector<std::string> names_of(const Counts& counts) {
  std::vector<std::string> names;
  for (const auto& [name, number] : counts) {
    names.push_back(name);
  }
  return names;
}

std::string describe_unmatched(const std::string& target, const std::vector<std::string>& names) {
  const std::vector<std::string> near = nearest(target, names, 1);
  return near.empty() ? fmt::format("\"{}\"", target)
                      : fmt::format("\"{}\" (did you mean \"{}\"?)", target, near.front());
}

}  // namespace

std::string short_name(const std::string& module) {
  return module.substr(module.rfind('.') + 1);  // npos + 1 == 0
}

void count(const std::string& name, Counts& counts) {
  const auto found = std::find_if(
      counts.begin(), counts.end(), [&](const auto& entry) { return entry.first == name; });
  if (found == counts.end()) {
    counts.emplace_back(name, 1);
  } else {
    ++found->second;
  }
}

// All that LoRA can adapt in a unit, in the order of the unit.
std::vector<LinearShape> adaptable(const UnitShape& unit) {
  std::vector<LinearShape> modules = unit.linears;
  modules.insert(modules.end(), unit.ends.begin(), unit.ends.end());
  return modules;
}

// Short names with how many modules bear them, in the order of first appearance.
Counts available(const ModelShape& model, bool with_ends) {
  Counts counts;
  for (const UnitShape& unit : model.units) {
    for (const LinearShape& linear : with_ends ? adaptable(unit) : unit.linears) {
      count(short_name(linear.module), counts);
    }
  }
  return counts;
}

std::string listed(const Counts& counts) {
  std::vector<std::string> texts;
  for (const auto& [name, number] : counts) {
    texts.push_back(fmt::format("{} ({} module{})", name, number, number == 1 ? "" : "s"));
  }
  return join(texts, ", ");
}

// The targets one by one, "all" spelt out, repetitions left out.
std::vector<std::string> spelt_out(const ModelShape& model, const LoraSettings& settings) {
  const std::vector<std::string>& targets = settings.target_modules;
  if (!settings.target_pattern.empty()) {
    return {};
  }
  if (targets.size() == 1 && means_all(targets.front())) {
    return names_of(available(model, /*with_ends=*/false));
  }
  std::vector<std::string> names;
  for (const std::string& target : targets) {
    if (means_all(target)) {
      throw Error(
          ErrorKind::kConfig,
          fmt::format("LoRA targets \"{}\": \"{}\" adapts every linear and must stand alone\n"
                      "  Write it alone, or list the module names.",
                      join(targets, ","),
                      target));
    }
    if (std::find(names.begin(), names.end(), target) == names.end()) {
      names.push_back(target);
    }
  }
  return names;
}

[[noreturn]] void fail_unmatched(const ModelShape& model,
                                 const std::vector<std::string>& unmatched) {
  const Counts counts = available(model, /*with_ends=*/true);
  std::vector<std::string> described;
  for (const std::string& target : unmatched) {
    described.push_back(describe_unmatched(target, names_of(counts)));
  }
  throw Error(ErrorKind::kConfig,
              fmt::format("LoRA targets that match no linear of this model: {}\n"
                          "  Available: {}.\n  Choose among them, or \"all\".",
                          join(described, ", "),
                          listed(counts)));
}

}  // namespace zeroth::shapes
