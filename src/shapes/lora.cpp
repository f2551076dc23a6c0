#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/check.h"
#include "base/error.h"
#include "base/text.h"
#include "shapes/model_shape.h"
#include <fmt/format.h>

namespace zeroth::shapes {
namespace {

// PEFT's rule: the whole path, or its end from a dot on.
bool matches(std::string_view module, std::string_view target) {
  return module == target ||
         (module.ends_with(target) && module[module.size() - target.size() - 1] == '.');
}

std::string short_name(const std::string& module) {
  return module.substr(module.rfind('.') + 1);  // npos + 1 == 0
}

bool means_all(std::string_view target) {
  return target == "all" || target == "all-linear";
}

// Short names with how many linears bear them, in the order of first appearance.
std::vector<std::pair<std::string, std::int64_t>> available(const ModelShape& model) {
  std::vector<std::pair<std::string, std::int64_t>> counts;
  for (const UnitShape& unit : model.units) {
    for (const LinearShape& linear : unit.linears) {
      const std::string name = short_name(linear.module);
      const auto found = std::find_if(
          counts.begin(), counts.end(), [&](const auto& entry) { return entry.first == name; });
      if (found == counts.end()) {
        counts.emplace_back(name, 1);
      } else {
        ++found->second;
      }
    }
  }
  return counts;
}

std::vector<std::string> names_of(const std::vector<std::pair<std::string, std::int64_t>>& counts) {
  std::vector<std::string> names;
  for (const auto& [name, count] : counts) {
    names.push_back(name);
  }
  return names;
}

// The targets one by one, "all" spelt out, repetitions left out.
std::vector<std::string> spelt_out(const ModelShape& model,
                                   const std::vector<std::string>& targets) {
  if (targets.size() == 1 && means_all(targets.front())) {
    return names_of(available(model));
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

void refuse_ends_of_the_model(const std::vector<std::string>& targets) {
  for (const std::string& target : targets) {
    const std::string name = short_name(target);
    if (name == "lm_head" || name == "embed_tokens") {
      throw Error(
          ErrorKind::kNotSupported,
          fmt::format("LoRA target \"{}\" is not supported: only the linears of the blocks are "
                      "adapted\n  Leave it out of the LoRA targets.",
                      target));
    }
  }
}

std::int64_t count_matches(const ModelShape& model, const std::string& target) {
  std::int64_t count = 0;
  for (const UnitShape& unit : model.units) {
    count +=
        std::count_if(unit.linears.begin(), unit.linears.end(), [&](const LinearShape& linear) {
          return matches(linear.module, target);
        });
  }
  return count;
}

std::string describe_unmatched(const std::string& target, const std::vector<std::string>& names) {
  const std::vector<std::string> near = nearest(target, names, 1);
  return near.empty() ? fmt::format("\"{}\"", target)
                      : fmt::format("\"{}\" (did you mean \"{}\"?)", target, near.front());
}

[[noreturn]] void fail_unmatched(const ModelShape& model,
                                 const std::vector<std::string>& unmatched) {
  const auto counts = available(model);
  std::vector<std::string> described;
  for (const std::string& target : unmatched) {
    described.push_back(describe_unmatched(target, names_of(counts)));
  }
  std::vector<std::string> listed;
  for (const auto& [name, count] : counts) {
    listed.push_back(fmt::format("{} ({} modules)", name, count));
  }
  throw Error(ErrorKind::kConfig,
              fmt::format("LoRA targets that match no linear of this model: {}\n"
                          "  Available: {}.\n  Choose among them, or \"all\".",
                          join(described, ", "),
                          join(listed, ", ")));
}

std::vector<LinearShape> adapted(const UnitShape& unit, const std::vector<std::string>& targets) {
  std::vector<LinearShape> linears;
  std::copy_if(unit.linears.begin(),
               unit.linears.end(),
               std::back_inserter(linears),
               [&](const LinearShape& linear) {
                 return std::any_of(targets.begin(), targets.end(), [&](const std::string& target) {
                   return matches(linear.module, target);
                 });
               });
  return linears;
}

}  // namespace

LoraTargets lora_targets(const ModelShape& model, const std::vector<std::string>& targets) {
  if (targets.empty()) {
    throw Error(ErrorKind::kConfig,
                "no LoRA targets are given\n  Name the modules to adapt, or write \"all\".");
  }
  LoraTargets result;
  result.target_modules = spelt_out(model, targets);
  refuse_ends_of_the_model(result.target_modules);
  std::vector<std::string> unmatched;
  for (const std::string& target : result.target_modules) {
    result.counts.emplace_back(target, count_matches(model, target));
    if (result.counts.back().second == 0) {
      unmatched.push_back(target);
    }
  }
  if (!unmatched.empty()) {
    fail_unmatched(model, unmatched);
  }
  for (const UnitShape& unit : model.units) {
    result.by_unit.push_back(adapted(unit, result.target_modules));
  }
  return result;
}

std::vector<ParameterShape> lora_parameters(const LinearShape& linear, std::int64_t rank) {
  ZEROTH_CHECK(rank > 0, "LoRA rank {} of {}", rank, linear.module);
  return {{.name = linear.module + ".lora_A.weight", .shape = {rank, linear.in_features}},
          {.name = linear.module + ".lora_B.weight", .shape = {linear.out_features, rank}}};
}

}  // namespace zeroth::shapes
